"""Brokers behind a connection that are killed and asked what they still have."""
