"""Bytes in: what a component may see becomes a fresh directory, under one path policy."""
