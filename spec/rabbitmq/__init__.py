"""The inside of a queue according to RabbitMQ's documents.

The invariants by id, the view that `inspect` shows, and the rules on a single view. The models
check all other invariants.
"""
