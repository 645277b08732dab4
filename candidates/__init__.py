"""How a broker is reached: an object in this process, a broker behind AMQP 0-9-1, a private server.

Belongs here: adapters that carry the operations of `spec/` to some broker and bring back what it
did, and the starting and stopping of servers for tests. Does not belong here: any opinion on
whether an answer is right (that is `checks/`), and any broker's own algorithm (that is
`reference/`). What the outside world does wrong comes back as an answer; only a candidate that
cannot be had at all raises, and always the one exception in `unavailable.py`. Imports `spec/` and
libraries, nothing else of ours.
"""
