"""Short parallel rounds on any candidate, recorded and judged, to find races.

Here belong a round, its clients, and the search for a small round that breaks a requirement. A long
load on a broker behind AMQP 0-9-1 is in `candidates/amqp091/load/`; the rules are in
`pipeline/rules/`.
"""
