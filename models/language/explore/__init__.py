"""Exploration: every state of a model in a scope.

The search, its traces and graphs, and liveness in small scopes.
"""
