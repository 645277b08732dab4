"""One run of the gate: its stages in order, what they share, and the process that it runs in.

A stage spends its share of the budget and files its findings. The search for traces is in `search`
and `threads`, their judgement in `oracle` and `inside`, the printed report in `report`.
"""
