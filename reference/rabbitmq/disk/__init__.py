"""The files of RabbitMQ's paging queue: queue index, message store, and their recovery."""
