"""ActiveMQ's cursors: they page messages in, from memory and from a store."""
