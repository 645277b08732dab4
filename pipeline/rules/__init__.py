"""The rules on histories as column kernels: their comparisons, and their reports."""
