"""Threads on our atomics, under every interleaving: scheduler, exploration and failures.

This folder decides which thread makes the next access, tells interleavings apart, and prints one.
It does not decide what the threads do (a case does) or what they must keep (a case's judge asks the
oracle).
"""
