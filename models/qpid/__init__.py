"""Qpid's queue as models: pointers, releases, credit and pull, and the refinements.

The refinements show that the queue keeps the contract. The steps of its threads are in `threads/`.
"""
