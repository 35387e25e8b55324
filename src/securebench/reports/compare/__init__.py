"""Runs against each other, task by task: how far apart, how sure, and whether they can be compared at all."""
