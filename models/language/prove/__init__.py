"""What holds for any number of elements, asked of Z3.

Invariants, counters, refinements and swaps; and the cache of what was decided.
"""
