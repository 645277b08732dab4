"""Qpid's queue as models.

Pointers, releases, credit and pull, and their refinement of the contract. The steps of its threads
are in `threads/`.
"""
