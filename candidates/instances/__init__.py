"""Brokers that the gate starts for itself.

Each is a private instance on loopback, with a folder of its own.
"""
