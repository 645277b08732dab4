"""The queue index's two tables: a segment with its journal, and a journal without its segment.

Source: later notes on RabbitMQ's queue index (2.8.2 to 3.11). Both are written out as they are
there, row by row; that they are what they mean is a test. Of a position, publish, deliver and
acknowledge are written in this order, as `P`, `d` and `a`; file and journal each have some of them.

One row differs from the notes. Where the segment's file has been deleted, the journal is forgotten;
of the entries that are then counted, one acknowledgement too many has been subtracted, so it is to
be added again (-1). The notes have 0 there, and with 0 the count is wrong after recovery.
"""

from __future__ import annotations

from collections.abc import Mapping

FILE = ("", "P", "Pd", "Pda")
"""What a segment's file can have of a position."""

JOURNAL = ("", "P", "Pd", "Pda", "d", "da", "a")
"""What a journal can have of a position."""

RECORDS = ("P", "d", "a")
"""What is written at once."""

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
"""What is live, by file and journal, and how many more are than in the file alone."""

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
"""What is left of the journal, by journal and file, and how many are counted twice.

What has no row is an index that nobody has written: recovery ends there.
"""
