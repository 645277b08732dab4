"""Brokers that speak AMQP 1.0, as candidates."""
