"""Candidates that are programs: driver protocol 1 over their standard input and output."""
