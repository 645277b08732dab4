"""The queue whose consumers pull: its lists, its priorities, and the refinements of the contract.

What it shares with the pushed queue (entries, places, windows, history) is one folder up.
"""
