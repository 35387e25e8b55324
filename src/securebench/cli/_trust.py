"""Whose keys the person who asks knows."""

from __future__ import annotations


def trusted_keys() -> dict[str, str]:
    """Ids of own and trusted keys with their names; a key of one's own goes by that name. Raises ConfigError."""
    from securebench.records.keys import keys_directory, known_keys

    known = sorted(known_keys(keys_directory()), key=lambda one: one.own)
    return {one.id: one.name for one in known}
