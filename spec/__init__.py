"""What is promised: requirements, operations, events, capabilities and the candidate interface.

Belongs here: the words that every other room shares, as frozen typed values, and the catalogue of
requirements. Does not belong here: behaviour (how a broker keeps a promise), formal meaning (that
is a model), and any input or output beyond loading the catalogue's own files. Imports nothing of
ours.
"""
