"""ActiveMQ's cursors: what pages messages in, in memory and from a store."""
