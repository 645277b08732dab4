"""Qpid's queue with push delivery.

The list of entries, pointers, subscriptions, and the runner.
"""
