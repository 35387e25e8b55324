"""Checking a finished run offline, from its files alone: plan, chain, contents, summary, checkpoints, seal."""
