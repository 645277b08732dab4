"""Recorded histories in, violations and coverage out.

Here are the readers of what others record, the recorder of a real broker's traffic, the rules of
`models/contract/history.py` as kernels over columns, and the two ways of running them: alone on
what fits in memory, and by Spark on everything. The rules themselves do not belong here, nor the
form of a history, which is in `spec/histories.py`; nor does anything that only one broker needs.
"""
