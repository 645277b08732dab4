"""Campaigns: many seeds of the gate, spread over Spark's workers."""
