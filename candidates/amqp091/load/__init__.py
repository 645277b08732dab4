"""A load on a broker that speaks AMQP 0-9-1: its producers, consumers and records."""
