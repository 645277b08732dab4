"""The oracle: it follows one run of a candidate by the contract.

What is tried on a candidate is not here, and nothing of a documented system.
"""
