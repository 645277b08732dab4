"""The steps of a trace, in names that mean the same to every broker, and what the names stand for.

How a step is judged is in `oracle` and `inside`; which steps are tried is in `search`.
"""
