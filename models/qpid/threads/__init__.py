"""Qpid's algorithms with one shared access for each step.

Lists, entry states, the runner and the notification of consumers. Models of whole operations are
one folder up.
"""
