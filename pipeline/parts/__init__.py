"""A history judged part by part: by message, then by slice of a queue.

Here: the steps, the first look at a history, the parcels that bring rows together, and the slices
of hot queues. An engine says where pieces are read and parts are judged: in processes of this
machine (`processes.py`) or on Spark (`spark/`).
"""
