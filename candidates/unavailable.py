"""The one exception of this folder: a candidate that cannot be reached, in one line.

No password is in that line.
"""

from __future__ import annotations

REASON_CHARACTERS_MAX = 400


class CandidateUnavailable(Exception):
    """A candidate cannot be loaded, started or reached; the gate could not run.

    The text is one line: where, what is wrong there, and what to do about it. The cause is chained,
    never swallowed. A foreign message is folded into the line and cut at `REASON_CHARACTERS_MAX`
    characters.

    >>> str(CandidateUnavailable("box:make", what="there is no module 'box'", remedy="install it"))
    "box:make: there is no module 'box'; install it"
    """

    def __init__(self, where: str, *, what: str, remedy: str) -> None:
        self.where = without_password(where)
        self.what = _in_one_line(what)
        self.remedy = remedy
        super().__init__(f"{self.where}: {self.what}; {remedy}")


def described(error: BaseException) -> str:
    """Return a foreign exception as its type and message, such as ``KeyError: 'x'``."""
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _in_one_line(text: str) -> str:
    folded = " ".join(text.split())
    if len(folded) <= REASON_CHARACTERS_MAX:
        return folded
    return folded[: REASON_CHARACTERS_MAX - 1] + "…"


HIDDEN = "***"
"""The text that replaces a password in an address."""


def without_password(address: str) -> str:
    """Return an address as reports show it: `scheme://user:***@host`."""
    scheme, separator, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    credentials, at, host = authority.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if not (separator and at and colon):
        return address
    return f"{scheme}://{user}:{HIDDEN}@{host}{slash}{path}"
