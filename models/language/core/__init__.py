"""The terms of the model language, and the run that traces a model into them.

Every reading is built on this package, which knows none of them.
"""
