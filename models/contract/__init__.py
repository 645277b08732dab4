"""The contract: what every broker guarantees its clients, as a model.

The rules on histories that follow from it are here too. The algorithms of the documented systems
are in their own folders, each with its refinement of the contract.
"""
