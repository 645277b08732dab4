"""The readings of a traced model: Python functions, NumPy columns, C, possible worlds, Z3.

The users of a reading (exploring, proving) are elsewhere.
"""
