"""A tool cache that sandboxes can enter, and a registry that only npm here knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.harnesses.toy_registry import Registry, need_npm, serving

from securebench.harnesses.tools.cache import ToolCache


@pytest.fixture
def cache(tmp_path: Path) -> ToolCache:
    for directory in (tmp_path, *tmp_path.parents[:3]):
        if directory.name.startswith(("pytest-", "test_", "popen-")):
            directory.chmod(0o755)  # sandboxes run as another user
    return ToolCache(tmp_path / "tools")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    need_npm()
    with serving() as made:
        monkeypatch.setenv("npm_config_registry", made.address)
        monkeypatch.setenv("npm_config_fetch_retries", "0")
        yield made
