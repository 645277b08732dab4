"""Reports: one typed record of the gate's verdicts, and its forms for people and machines.

The record is `verdict_file`; one module for each form reads nothing but the record. Reports do not
judge: `checks.verdicts` decides how a verdict counts.
"""
