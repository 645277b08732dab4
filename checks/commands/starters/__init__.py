"""What `brokerproof init` writes: a starting point for the reader's own queue, in four forms.

Belongs here: one file a form, small enough to be read in one go, each with a queue in memory that
keeps what it claims, and the places marked where the reader's own queue goes. Does not belong here:
anything that the gate imports.
"""
