"""Mutation testing of models: one part of a model is changed, and a proof should notice."""
