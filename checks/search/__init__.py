"""The moves that are tried on a candidate: scopes, strategies, findings and their minimising.

A move itself is in `trace`. The stages that spend a budget on a search are in `gate`.
"""
