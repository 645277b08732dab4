"""The page about surviving mutants as data: the heading that explains each.

A surviving mutant is a list item with its name as code; the heading above it is the reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "findings" / "mutants.md"
_ITEM: Final = re.compile(r"^- `([\w/]+\.py \S+: .+ -> .+)`$")


def explanations(text: str | None = None) -> dict[str, str]:
    """Return the heading that explains each surviving mutant."""
    heading, found = "", dict[str, str]()
    for line in (PAGE.read_text(encoding="utf-8") if text is None else text).splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif item := _ITEM.match(line):
            if item[1] in found:
                raise ValueError(f"{item[1]} is explained twice")
            found[item[1]] = heading
    return found
