"""The system `rabbitmq-paging`: a process in front of each queue, and what it keeps on a disk.

What belongs here: the consumers of a queue and whose turn it is, handing out and taking back,
priorities as one backing queue each, and a broker's disk with what durable queues were declared as.
What does not: how a backing queue keeps messages in RAM and on disk (`paging`), and names of
clients (the broker).
"""
