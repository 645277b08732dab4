"""Brokers that speak AMQP 0-9-1, as candidates."""
