"""What is tried on a candidate.

The strategies, the moves they make, and how a finding is minimised and replayed.
"""
