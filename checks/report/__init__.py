"""Reports: one typed record of what the gate says, and its forms for people and for machines.

What belongs here: the record (`verdict_file`), and one module for each form that is made of it and
of nothing else. No judging: which verdict counts as what is decided in `checks.verdicts`.
"""
