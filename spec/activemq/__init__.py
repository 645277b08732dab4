"""What ActiveMQ's documents say of the inside of a queue.

The invariants, by id, and the view that `inspect` shows. How a view is judged is not here: the
models judge it.
"""
