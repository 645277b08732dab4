"""What a history says of each message.

Where it waited and from when until when, for whom, and what is ambiguous in that.
"""
