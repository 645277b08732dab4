"""The scopes that the exhaustive stage searches.

They say which moves each scope has, and for which claims.
"""
