"""ActiveMQ's queue as models.

Page-in, cursors, memory, the audit, and their refinement of the contract.
"""
