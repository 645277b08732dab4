"""The queue of ActiveMQ (5.1 to 5.3): its messages in memory and on disk, and its recovery.

Each part has a file: memory accounting, the audit of seen messages, the linked store with its
journal, the cursors that read from it, and the queue that delivers. Clients, their names, and the
parts shared by all systems are elsewhere.

Sources: the analysis of ActiveMQ's queue (5.1), and the releases from 5.1.0 to 5.3.0 where the
analysis is silent or wrong; each file says which.
"""
