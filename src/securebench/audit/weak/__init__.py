"""Positive controls: graders and sandboxes as they are usually written, each with the hole an attack needs.

Nothing but the catalogue of attacks may import these; a contract of the layers says so. What runs here runs inside a
sandbox of ours all the same: an attack that succeeds must not reach the host."""
