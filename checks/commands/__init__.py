"""The commands, the configuration, and the pytest plugin.

Here are the forms of a user's input, and the errors for a wrong one.
"""
