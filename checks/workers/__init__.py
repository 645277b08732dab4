"""The processes in which candidates run, and the limits on their time and memory."""
