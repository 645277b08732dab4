"""The inside that a candidate shows, held against the models of the documents."""
