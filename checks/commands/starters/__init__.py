"""The files that `brokerproof init` writes: a starting point for the user's queue, in four forms.

Each form is one file, small enough to be read in one go, with a queue in memory that keeps what it
claims, and marks where the user's own queue goes. The gate imports none of them.
"""
