"""The inside of a queue according to RabbitMQ's documents.

`invariants.toml` has the invariants by id, `view` the view that `inspect` shows, and `view_rules`
the rules on a single view. The models check all other invariants.
"""
