"""The queues of Apache Qpid: `push`, and `pull`, which builds on it."""
