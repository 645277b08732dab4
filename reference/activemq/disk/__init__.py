"""ActiveMQ's stores: the journal, the reference store, and the linked container."""
