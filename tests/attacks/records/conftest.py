"""One real run for all, copied for each attack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.attacks.records.sealed_runs import ROWS, key_named, make_run
from tests.e2e.workbench import need_bubblewrap
from tests.unit.workspaces.git_cases import need_git


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("config") / "keys"
    key_named("maker", directory)
    return directory


@pytest.fixture(scope="session")
def sealed(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    need_bubblewrap()
    need_git()
    return make_run(tmp_path_factory.mktemp("sealed"), keys)


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Path:
    """Another run of the same name, pack and key."""
    need_bubblewrap()
    return make_run(tmp_path_factory.mktemp("other"), keys, rows=ROWS[:3])


@pytest.fixture
def run(sealed: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(sealed, tmp_path / "run", symlinks=True))
