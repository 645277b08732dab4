"""Growing histories: what is judged now, and what is kept until later."""
