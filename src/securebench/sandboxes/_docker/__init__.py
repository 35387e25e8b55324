"""The parts of the Docker backend, one idea per file; `sandboxes.docker` puts them together."""
