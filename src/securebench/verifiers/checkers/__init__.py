"""Checkers: the pack author's program looks at the captured workspace as data, and asks the worker to execute."""
