"""Parts that several documented systems use: atomic cells, time, disks and selectors."""
