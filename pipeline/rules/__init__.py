"""The rules on histories as column kernels: what each compares, and what it reports."""
