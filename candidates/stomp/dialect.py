"""How a broker speaks STOMP beyond the standard, as data, and the headers that follow from it.

The file owns the settings under ``[dialect]`` of a profile for STOMP, and the encoding of ids,
property names, types and selectors. It does not know connections.

**Encoding.** Header values are texts, so a property's type goes into its name: ``text_``,
``number_`` or ``truth_`` and the name, in which each byte but letters and digits is ``_`` and two
hexadecimal digits. The result is an identifier in a selector of JMS too. Values are
percent-encoded, so they need no quoting in a header or a selector. Numbers are equal by value
(driver protocol 1, rule 23), hence 1.0 is written as 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote

import msgspec

from brokerproof.candidates.stomp.frames import VERSIONS, Version
from brokerproof.spec.messages import Message, Order, Priority, PriorityMapping, level_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from brokerproof.spec.messages import PropertyValue
    from brokerproof.spec.protocol.operations import Consume, Declare, Selector

ID = "brokerproof-id"
"""The header with the message's id."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one broker; the defaults are those of a broker of which nothing is known.

    `versions` are those that the adapter offers. `destination` makes a destination of a queue's
    name. `connection_per` says what has a connection of its own: each consumer, or each channel
    with all its consumers. `cancel_by` is the frame that ends a consumer *and* returns what it
    holds. `mode` is the value of ``ack`` for consumers that acknowledge.

    `window` is the header with the window of a consumer. An unlimited window is `no_window`; an
    empty text leaves the header out. Where ACK settles all earlier messages of a subscription too,
    or a subscription is given one message at a time (often with mode ``client``), `split_window` is
    not 0: a consumer then has a subscription for each message of its window, and so many for an
    unlimited one, and as many again whenever each of these holds a message.

    `reject_by` is the frame that discards a message; with `NACK` it carries `reject_headers`.
    `release_headers`, if given, make NACK return the message.

    `send_headers` and `subscribe_headers` are added to each frame, where ``{durable}`` stands for
    ``true`` or ``false``. `levels` is the header of both that makes a queue of several levels, and
    its value is the highest level. `consumer_priority` is a header of SUBSCRIBE. `browse_headers`
    make a browser of a consumer; its last frame has the first of them with the value ``end``.

    `leftover` says whether messages that an example leaves are taken away by the adapter, or left
    to the broker's own collection of unused queues.
    """

    versions: tuple[Version, ...] = VERSIONS
    destination: str = "/queue/{queue}"
    connection_per: Literal["consumer", "channel"] = "consumer"
    cancel_by: Literal["DISCONNECT", "UNSUBSCRIBE"] = "DISCONNECT"
    mode: Literal["client-individual", "client"] = "client-individual"
    window: str = ""
    no_window: str = ""
    split_window: int = 0
    reject_by: Literal["NACK", "ACK"] = "ACK"
    reject_headers: dict[str, str] = {}
    release_headers: dict[str, str] | None = None
    send_headers: dict[str, str] = {}
    subscribe_headers: dict[str, str] = {}
    levels: str = ""
    consumer_priority: str = ""
    browse_headers: dict[str, str] = {}
    leftover: Literal["take", "leave"] = "take"

    def to_queue(self, name: str) -> dict[str, str]:
        """Return the header that names a queue."""
        return {"destination": self.destination.format(queue=name)}

    def of_queue(self, added: Mapping[str, str], declared: Declare) -> dict[str, str]:
        """Return the headers that declare a queue along with a SEND or SUBSCRIBE."""
        durable = "true" if declared.durable else "false"
        headers = {name: value.format(durable=durable) for name, value in added.items()}
        if self.levels and isinstance(declared.order, Priority) and declared.order.levels > 1:
            headers[self.levels] = str(declared.order.levels - 1)
        return headers

    def to_send(
        self, name: str, declared: Declare, message: Message, mapping: PriorityMapping
    ) -> dict[str, str]:
        """Return the headers of SEND; the id and the properties are encoded."""
        headers = self.to_queue(name) | {ID: encoded_text(message.id)}
        if message.persistent:
            headers["persistent"] = "true"
        # RabbitMQ takes `persistent` for `durable` too, and the later of the two counts.
        headers |= self.of_queue(self.send_headers, declared)
        if (priority := self.priority(message, declared.order, mapping)) is not None:
            headers["priority"] = str(priority)
        for key, value in message.properties.items():
            property_name, text = encoded_property(key, value)
            headers[property_name] = text
        return headers

    def priority(self, message: Message, order: Order, mapping: PriorityMapping) -> int | None:
        """Return the priority to send; None for a queue in which it has no effect.

        A broker that fixes the number of levels itself is sent the level.
        """
        if not isinstance(order, Priority):
            return None
        return message.priority if self.levels else level_of(message.priority, order, mapping)

    def to_subscribe(self, name: str, declared: Declare, operation: Consume) -> dict[str, str]:
        """Return the headers of SUBSCRIBE, except its id."""
        headers = self.to_queue(name) | self.of_queue(self.subscribe_headers, declared)
        acknowledges = operation.mode == "acknowledge"
        headers["ack"] = self.mode if acknowledges else "auto"
        window = 1 if self.split_window else operation.credit.messages
        # Only unsettled messages fill a window (driver protocol 1, rule 3).
        value = str(window) if acknowledges and window is not None else self.no_window
        if self.window and value:
            headers[self.window] = value
        if operation.mode == "browse":
            headers |= self.browse_headers
        if operation.priority and self.consumer_priority:
            headers[self.consumer_priority] = str(operation.priority)
        if operation.selector:
            headers["selector"] = encoded_selector(operation.selector)
        return headers

    def subscriptions_for(self, operation: Consume) -> int:
        """Return how many subscriptions at the broker make one consumer."""
        if not self.split_window or operation.mode != "acknowledge":
            return 1
        window = operation.credit.messages
        return self.split_window if window is None else window

    def ends_browsing(self, headers: Mapping[str, str]) -> bool:
        """Return whether a MESSAGE frame with these headers is the last one of a browser."""
        return any(headers.get(name) == "end" for name in list(self.browse_headers)[:1])


def encoded_text(text: str) -> str:
    """Return a text in letters, digits and ``_.-~%``; `decoded_text` reads it.

    >>> encoded_text("m 0")
    'm%200'
    """
    return quote(text, safe="", errors="surrogatepass")


def decoded_text(text: str) -> str:
    """Return the text that was encoded."""
    return unquote(text, errors="surrogatepass")


def encoded_property(name: str, value: PropertyValue) -> tuple[str, str]:
    """Return the header of a property; equal headers are equal properties.

    >>> encoded_property("max age", 3.0)
    ('number_max_20age', '3')
    """
    if isinstance(value, bool):
        kind, text = "truth", "true" if value else "false"
    elif isinstance(value, str):
        kind, text = "text", encoded_text(value)
    else:
        whole = isinstance(value, float) and value.is_integer()
        kind, text = "number", str(int(value) if whole else value)
    return f"{kind}_{_identifier(name)}", text


def encoded_selector(selector: Selector) -> str:
    """Return a selector of JMS (SQL-92) that all properties satisfy together.

    >>> encoded_selector({"colour": "red", "n": 1})
    "text_colour = 'red' AND number_n = '1'"
    """
    equals = (encoded_property(name, value) for name, value in selector.items())
    return " AND ".join(f"{name} = '{text}'" for name, text in equals)


def _identifier(name: str) -> str:
    signs = name.encode(errors="surrogatepass")
    return "".join(
        chr(sign) if sign < 0x80 and chr(sign).isalnum() else f"_{sign:02X}" for sign in signs
    )
