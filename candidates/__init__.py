"""How a broker is reached: an object in this process, a driver, AMQP 0-9-1, a private server.

Adapters carry the operations of `spec/` to a broker and return its answers; other modules start and
stop servers for tests. This folder does not judge answers (`checks/` does), and holds no broker's
algorithm (`reference/` does). A fault of the outside world comes back as an answer. Only a
candidate that cannot be reached at all raises, always the exception of `unavailable.py`. The folder
imports `spec/` and libraries, nothing else of ours.
"""
