"""The gate: candidates are run, judged by the oracle, and what is found is reported.

Belongs here: the oracle that follows a broker, the stages, counterexamples, verdicts, the command
line. Does not belong here: what is promised (`spec`), why it holds (`models`), how a broker is
reached (`candidates`).
"""
