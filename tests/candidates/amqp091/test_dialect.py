"""The settings of a profile for AMQP 0-9-1, as arguments of its methods."""

from __future__ import annotations

from msgspec.structs import replace

from brokerproof.candidates.amqp091.dialect import Dialect, unfit_window
from brokerproof.candidates.wire.profile import by_name, shipped
from brokerproof.spec.messages import Credit, Fifo, Priority
from brokerproof.spec.protocol.answers import Error
from brokerproof.spec.protocol.capabilities import Capabilities
from brokerproof.spec.protocol.operations import Consume, Declare

RABBITMQ = by_name("rabbitmq-amqp091").read_dialect(Dialect)
BROKER_J = by_name("broker-j-amqp091").read_dialect(Dialect)


def test_each_shipped_profile_has_the_settings_that_its_claims_need() -> None:
    for profile in shipped().values():
        if profile.protocol == "amqp091":
            assert profile.read_dialect(Dialect).missing(profile.claims) == ""


def test_a_claim_without_its_setting_is_named() -> None:
    claims = replace(by_name("rabbitmq-amqp091").claims, selectors=True)
    assert RABBITMQ.missing(claims) == "selector_argument"


def test_levels_are_counted_as_the_broker_counts_them() -> None:
    assert RABBITMQ.of_order(Priority(4)) == {"x-max-priority": 3}
    limit = {"x-qpid-maximum-delivery-count": 1}
    assert BROKER_J.of_order(Priority(4)) == {"x-qpid-priorities": 4, **limit}
    for dialect, plain in ((RABBITMQ, {}), (BROKER_J, limit)):
        assert dialect.of_order(Fifo()) == dialect.of_order(Priority(1)) == plain


def test_two_declares_look_alike_where_the_broker_sees_no_difference() -> None:
    one = Declare(queue="q", order=Fifo())
    assert RABBITMQ.look_alike(one, Declare(queue="q", order=Priority(1)))
    assert not RABBITMQ.look_alike(one, Declare(queue="q", order=Priority(2)))
    assert not RABBITMQ.look_alike(one, Declare(queue="q", order=Fifo(), auto_delete=True))


def test_a_consumer_has_only_the_arguments_that_it_asks_for() -> None:
    plain = Consume(channel="ch", queue="q", consumer="c")
    assert RABBITMQ.of_consumer(plain, ["x"]) == {}
    # Broker-J would prefer one without a priority.
    assert BROKER_J.of_consumer(plain, ["x"]) == {"x-priority": 0}
    every = replace(plain, mode="browse", priority=2, selector={"a": 1}, auto_close=True)
    assert BROKER_J.of_consumer(replace(every, queues=("q", "r")), ["x", "y"]) == {
        "x-priority": 2,
        "x-filter-no-consume": True,
        "x-filter-auto-close": True,
        "x-filter-jms-selector": "a = 1",
        "x-multiqueue": ["x", "y"],
    }
    unfit = BROKER_J.of_consumer(replace(plain, selector={"a b": 1}), ["x"])
    assert isinstance(unfit, Error)
    assert unfit.code == "unsupported"


def test_a_window_of_0_would_mean_no_limit() -> None:
    codes = []
    for window in (None, 1, 0, -1):
        consume = Consume(channel="ch", queue="q", consumer="c", credit=Credit(window))
        error = unfit_window(consume)
        codes.append(None if error is None else error.code)
    assert codes == [None, None, "unsupported", "refused"]


def test_a_channel_that_pauses_has_windows_of_0() -> None:
    consume = Consume(channel="ch", queue="q", consumer="c", credit=Credit(0))
    assert unfit_window(consume, pauses=True) is None


def test_a_change_of_windows_needs_channels_that_pause() -> None:
    claims = Capabilities(credit=("messages", "change"))
    assert replace(BROKER_J, pauses=False).missing(claims) == "pauses"
    assert replace(BROKER_J, pauses=True).missing(claims) == ""
