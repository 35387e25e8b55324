"""Verdicts: one file per family; `registry` finds the one for a task type."""
