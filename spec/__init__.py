"""The specification: requirements, operations, events, capabilities and the candidate interface.

This package holds the types that every other package shares, as frozen values, and the catalogue of
requirements. Behaviour (how a broker meets a requirement) and formal meaning (the models) are
elsewhere. The only input is the catalogue's own files. Imports no other package of the project.
"""
