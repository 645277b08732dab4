"""RabbitMQ's backing queue as models.

Places and paging, the index, confirms, and their refinement of the contract.
"""
