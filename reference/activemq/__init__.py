"""The queue of ActiveMQ (5.1 to 5.3): what of it is in memory, what on disk, and how it comes back.

Here belongs what such a queue is made of, each part in a file of its own: the account of memory,
the audit of what was seen, the linked store on disk with its journal, the cursors that read from
it, and the queue that hands out what they have. Clients and their names do not, nor what is shared
by queues of all systems.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases from 5.1.0 to 5.3.0 where the
analysis is silent or wrong; each file says which.
"""
