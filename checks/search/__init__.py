"""The moves that are tried on a candidate.

Here are the strategies, the moves they make, and how a finding is minimised and replayed.
"""
