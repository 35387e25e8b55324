"""Other layouts in which people have samples, each read as pieces of one kind: a line of JSON with its place."""

from __future__ import annotations
