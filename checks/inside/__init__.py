"""What a candidate shows of its inside, held against the models of the documents."""
