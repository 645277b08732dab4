"""A history judged part by part: by message, then by slice of a queue.

Here: the stages on one part, the results of a first look at all parts, the slices of hot queues,
and the order of the steps. The engines say where the parts are: in processes of this machine
(`processes.py`) or on Spark (`spark/`).
"""
