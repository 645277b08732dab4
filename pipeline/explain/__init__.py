"""Violations for a reader: witnesses, minimal runs, and the report."""
