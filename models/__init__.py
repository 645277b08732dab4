"""The proofs: the model language, the contract, and one model for each documented algorithm.

This package holds all formal statements about brokers, and the readings of them (plain Python,
columns, proof). Candidates, operations on the wire, verdicts and running brokers are elsewhere.
"""
