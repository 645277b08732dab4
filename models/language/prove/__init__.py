"""Proofs by Z3 for any number of elements.

Invariants, counters, refinements and commuting steps; and the cache of decided results.
"""
