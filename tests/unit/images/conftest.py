"""A store in a temporary directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.images.builders import make_store

from securebench.images._tree import remove_entry
from securebench.images.store import ImageStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ImageStore]:
    yield make_store(tmp_path / "store")
    if (tmp_path / "store").exists():
        parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        remove_entry(parent, b"store")  # pytest cannot remove read-only directories as an ordinary user
        os.close(parent)
