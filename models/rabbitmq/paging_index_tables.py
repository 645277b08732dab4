"""The queue index's two tables: a segment with its journal, and a journal without its segment.

Source: later notes on RabbitMQ's queue index (2.8.2 to 3.11). The rows are those of the notes; a
test checks them against their meaning. A position's publish, deliver and acknowledge are written in
this order, as `P`, `d` and `a`; file and journal each have some of them.

One row differs from the notes. If the segment's file has been deleted, the journal is forgotten.
The count has then subtracted one acknowledgement too many, which has to be added again (-1). The
notes have 0 there, which gives a wrong count after recovery.
"""

from __future__ import annotations

from collections.abc import Mapping

FILE = ("", "P", "Pd", "Pda")
"""The possible contents of a segment's file for a position."""

JOURNAL = ("", "P", "Pd", "Pda", "d", "da", "a")
"""The possible contents of a journal for a position."""

RECORDS = ("P", "d", "a")
"""The records, each written as a whole."""

SEGMENT_WITH_JOURNAL: Mapping[tuple[str, str], tuple[str, int]] = {
    ("", ""): ("", 0),
    ("P", ""): ("P", 0),
    ("Pd", ""): ("Pd", 0),
    ("Pda", ""): ("", 0),
    ("", "P"): ("P", 1),
    ("", "Pd"): ("Pd", 1),
    ("", "Pda"): ("", 0),
    ("P", "d"): ("Pd", 0),
    ("P", "da"): ("", -1),
    ("Pd", "a"): ("", -1),
}
"""The live operations by file and journal, and how many more they count than the file alone."""

JOURNAL_WITHOUT_SEGMENT: Mapping[tuple[str, str], tuple[str, int]] = {
    ("P", "P"): ("", 1),
    ("Pd", "Pd"): ("", 1),
    ("Pda", "Pda"): ("", 0),
    ("P", ""): ("P", 0),
    ("Pd", ""): ("Pd", 0),
    ("Pda", ""): ("Pda", 0),
    ("Pd", "P"): ("d", 1),
    ("Pda", "P"): ("da", 1),
    ("Pda", "Pd"): ("a", 1),
    ("d", "P"): ("d", 0),
    ("d", "Pd"): ("", 0),
    ("a", "Pd"): ("a", 0),
    ("a", "Pda"): ("", -1),
    ("da", "P"): ("da", 0),
    ("da", "Pd"): ("a", 0),
    ("da", "Pda"): ("", -1),
    ("a", ""): ("", -1),
    ("da", ""): ("", -1),
    ("a", "P"): ("da", 0),
}
"""The rest of the journal by journal and file, and how many entries are counted twice.

A combination without a row is no index that was ever written: recovery fails there.
"""
