"""Brokers that the gate starts for itself.

A private instance on loopback, with a folder of its own.
"""
