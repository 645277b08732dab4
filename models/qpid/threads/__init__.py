"""Qpid's algorithms at the grain of one shared access a step.

Lists, entry states, the runner and the notification of consumers. Models of whole operations are
one folder up.
"""
