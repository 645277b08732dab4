"""Threads on our atomics, under every interleaving: the scheduler, what it explores, what it finds.

Belongs here: whatever decides which thread makes the next access, tells interleavings apart, and
prints one. Does not belong here: what the threads do (a case says that) and what they promise (a
case's judge asks whoever states it).
"""
