"""The rules on Spark: the session, the two shuffles, and slices of hot queues."""
