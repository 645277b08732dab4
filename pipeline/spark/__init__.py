"""The rules on Spark: the session, and the shuffles that bring the parts of a history together."""
