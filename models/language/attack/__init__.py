"""Mutation testing of models: one part of a model changed, and whether a proof notices."""
