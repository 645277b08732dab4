"""The waiting intervals of messages.

Where and when each message waited, for which subscriber, and which records are ambiguous.
"""
