"""What RabbitMQ's paging queue writes.

The queue index and the message store, and their recovery.
"""
