"""Attacks on ourselves and on packs: what must not score, must not."""
