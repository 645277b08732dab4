"""What the gate and a candidate say to each other.

Operations, answers, messages, claims, and the driver's lines. Requirements are not here, and
nothing of one documented system.
"""
