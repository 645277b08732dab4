"""The system `rabbitmq-paging`: a process in front of each queue, and its disk.

Here: a queue's consumers and their turns, deliveries and returns, priorities as one backing queue
for each level, and the broker's disk with the definitions of durable queues. `paging` keeps the
messages in RAM and on disk; the broker owns the names of clients.
"""
