"""What all adapters of brokers on the wire share.

Addresses, deadlines, profiles, the state of one example, and the life of a candidate from one
example to the next. What belongs to one protocol is in its own folder (`amqp091/`, `stomp/`,
`amqp10/`); this folder knows no frames.
"""
