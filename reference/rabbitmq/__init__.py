"""The queues of RabbitMQ: the queue process, the paging queue below it, and its files."""
