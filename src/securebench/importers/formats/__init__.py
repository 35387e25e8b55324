"""One file per format: what a row of it is, and what row of a pack it becomes."""
