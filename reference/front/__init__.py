"""The broker as clients meet it: candidate interface, claims, consumers, credit and durability.

How a queue keeps its messages is not here: each documented system has its own folder.
"""
