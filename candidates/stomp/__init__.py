"""Brokers that speak STOMP 1.0, 1.1 or 1.2, as candidates."""
