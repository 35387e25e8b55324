"""What a run must have reached before something is released: conditions, each with what was found."""
