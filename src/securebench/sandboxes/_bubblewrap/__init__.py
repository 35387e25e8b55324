"""The parts of the bubblewrap backend, one idea per file; `sandboxes.bubblewrap` puts them together."""
