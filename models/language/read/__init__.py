"""The readings of a traced model.

Python functions, NumPy columns, C, possible worlds, and Z3's formulas. What is done with a reading
(exploring, proving) is not here.
"""
