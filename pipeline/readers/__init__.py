"""Readers: recordings of others, as records of a history.

One file for each form of recording. A reader translates each record of the form into our words, and
rejects unreadable rows with reason and place. It does not judge the traffic.
"""
