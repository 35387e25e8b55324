"""Attacks on one benchmark pack: what passes without work, what is in sight of agents, what the tests do not see."""
