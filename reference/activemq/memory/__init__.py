"""The memory of a queue: usage by node, the references to messages, and the order of giving way."""
