"""ActiveMQ's queue as models: page-in, cursors, memory, the audit, and the refinement.

The refinement shows that the queue keeps the contract.
"""
