"""What a view of a running queue is held against: paths of a model between two of its states."""
