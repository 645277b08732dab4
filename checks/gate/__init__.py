"""One run of the gate: its stages in order, what they share, and the process that it runs in.

A stage decides what is tried and files what it finds. How a trace is found and judged is in
`search`, `oracle`, `inside` and `threads`; how a verdict is printed is in `report`.
"""
