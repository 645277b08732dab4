"""Why the promises hold: the model language, the contract, and one model per documented algorithm.

Belongs here: everything that is stated about brokers formally, and the readings of it (plain
Python, columns, proof). Does not belong here: candidates, operations on the wire, verdicts, and
anything that runs a broker.
"""
