"""The embedded backend: bubblewrap, no daemon, no root needed."""

from __future__ import annotations
