"""Model-based monitoring: paths of a model between two views of a running queue."""
