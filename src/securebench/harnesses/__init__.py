"""Producers: one file per harness. They see the agent's view of a task and nothing else."""
