"""Suggestions for an unknown name, in the words of an error message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """Return the known name most like `name` as the end of a sentence, or an empty text.

    >>> meant("selector", ["get", "selectors"])
    " (did you mean 'selectors'?)"
    """
    alike = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {alike[0]!r}?)" if alike else ""
