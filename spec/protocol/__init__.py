"""The protocol between the gate and a candidate.

Operations, answers, messages, capabilities and the driver's lines. Requirements are elsewhere, and
so is everything that concerns one documented system only.
"""
