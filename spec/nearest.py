"""Names that may have been meant where one is not known, as an error says it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like another, as the end of a sentence; or nothing.

    >>> meant("selector", ["get", "selectors"])
    " (did you mean 'selectors'?)"
    """
    alike = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {alike[0]!r}?)" if alike else ""
