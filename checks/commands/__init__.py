"""The commands, the configuration, and the pytest plugin.

What a user types and what is refused.
"""
