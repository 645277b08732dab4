"""The queues of RabbitMQ (2.8.2). The place to begin is `paging/variable_queue`.

That is the document's queue with its five places; `paging/moves` has the moves between RAM and
disk. `disk` has the files below it, `process` the queue process above it. Models:
`models/rabbitmq`.
"""
