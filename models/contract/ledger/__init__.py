"""The ledger: the contract, and what its clients have seen of it."""
