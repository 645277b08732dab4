"""Readers: what was recorded elsewhere, as records of a history.

One file for each form of recording. A reader says what each record of the form means in our words,
and sets aside, with reason and place, what it cannot read. What is right or wrong with the traffic
does not belong here.
"""
