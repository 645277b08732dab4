"""The commands `trace` and `campaign`."""
