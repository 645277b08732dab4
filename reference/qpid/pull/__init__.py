"""The system `qpid-pull`: consumers take messages when the queue has told them that there are some.

What belongs here: who is told (the lists of consumers and the moves between them), the way from an
arrival to the wire and back, and the queue that uses both. What does not: entries, their lists and
the places of consumers in them, which are those of the other systems.

Source: Qpid, "Queue consumers that pull" (6.2; in releases from 7.0 on). The moves of the table and
the steps that the document leaves out are those of the releases.
"""
