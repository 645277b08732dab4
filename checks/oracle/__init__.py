"""The oracle: it follows one run of a candidate by the contract.

It does not choose the moves, and knows nothing of a documented system.
"""
