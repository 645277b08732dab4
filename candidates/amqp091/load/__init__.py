"""A load on a broker that speaks AMQP 0-9-1: its producers and consumers, and what they noted."""
