"""Violations for a reader: witnesses, least runs, and the report."""
