"""The contract.

What every broker promises its clients, as a model, and the rules on histories that follow from it.
No algorithm of a documented system is here; each refines the contract in its own folder.
"""
