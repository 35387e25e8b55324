"""What happened, written once: the record of an attempt, its append-only store, and the scrubbing of secrets."""
