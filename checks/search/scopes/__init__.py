"""The small worlds that the exhaustive stage searches.

Which moves each has, and for which claims.
"""
