"""Checks of packs and of this host: what must fail, tried, and seen to fail."""
