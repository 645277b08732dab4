"""The terms of the model language, and the one run that traces a model into them.

Every reading is built on this folder; it knows none of them.
"""
