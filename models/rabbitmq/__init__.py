"""RabbitMQ's backing queue as models: places and paging, the index, confirms, the refinement.

The refinement shows that the queue keeps the contract.
"""
