"""The system `qpid-pull`: the queue notifies consumers of messages, and they take them.

Here: the choice of the notified consumer (the lists of consumers and the moves between them), the
way from an arrival to the wire and back, and the queue that uses both. Entries, their lists and the
pointers of consumers are those of `push`.

Source: Qpid, "Queue consumers that pull" (6.2; in releases from 7.0 on). The moves of the table and
the steps that the document leaves out are those of the releases.
"""
