"""The files of RabbitMQ's paging queue: queue index, message store, and their recovery.

The places to begin are `queue_index` and `message_store`. The document names both without a
description; their source is the release. Models: `models/rabbitmq/paging_index.py` and
`paging_syncs.py`.
"""
