"""Two rooms: tests in one sandbox, candidate code in another, and the host between them passing bytes."""
