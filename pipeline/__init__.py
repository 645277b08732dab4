"""Recorded histories in, violations and coverage out.

Here: the readers of recordings, the recorder of a real broker's traffic, the rules of
`models/contract/history.py` as kernels over columns, and what runs them: one process, several
processes with files between them, and Spark.
Elsewhere: the rules themselves, the form of a history (`spec/histories.py`), and everything that
only one broker needs.
"""
