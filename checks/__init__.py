"""The gate: it runs candidates, judges them by the oracle, and reports.

It holds the oracle that follows a broker, the stages, counterexamples, verdicts and the command
line. It does not hold the requirements (`spec`), why they hold (`models`) or how a broker is
reached (`candidates`).
"""
