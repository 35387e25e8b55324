"""Packs that name an image run without Docker, on an image imported into our own store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import question, securebench
from tests.rootfs import make_root


@pytest.fixture
def shell_root(tmp_path: Path) -> Path:
    """A root file system with a shell and a few tools, made of this host's own."""
    root = make_root(tmp_path / "root", ("sh", "cat", "ls", "readlink", "env", "rm"))
    (root / "etc" / "from-the-image").write_text("42\n")
    return root


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("store")
    for directory in (home, *home.parents):
        if directory.is_relative_to("/tmp/pytest-of-root"):
            directory.chmod(0o755)  # sandboxes run as another user
    monkeypatch.setenv("SECUREBENCH_HOME", str(home))
    return home


def test_a_task_runs_in_an_imported_image_and_its_digest_is_recorded(bench: Any, shell_root: Path, store: Path) -> None:
    imported = securebench("image", "import", f"dir:{shell_root}", "--name", "tasks/shell:1", "--json")
    assert imported.code == 0, imported.err
    row = question(1, environment={"image": "tasks/shell:1"})
    work = bench([row], 'echo "Answer: $(cat /etc/from-the-image)"; ls / >&2')
    done = work.run()
    assert done.code == 0, done.err
    [record] = work.records()
    assert record["passed"], record
    assert record["digests"]["image"] == imported.json["digest"]
    assert "usr" not in record["producer_stderr"].split(), "the host's programs are not in the image"


def test_an_image_nobody_has_is_refused_before_anything_runs(bench: Any, store: Path) -> None:
    work = bench([question(1, environment={"image": "tasks/none:1"})], "echo 42")
    done = work.run()
    assert done.code == 3
    assert "securebench image import" in done.err
    assert not work.output.exists()


def test_rows_with_and_without_an_image_share_a_run(bench: Any, shell_root: Path, store: Path) -> None:
    securebench("image", "import", f"dir:{shell_root}", "--name", "tasks/shell:1")
    rows = [question(1, environment={"image": "tasks/shell:1"}), question(2)]
    done = bench(rows, "[ -e /etc/from-the-image ] && cat /etc/from-the-image || echo 41").run()
    assert done.code == 0, done.err
    assert (done.json["passed"], done.json["failed"]) == (1, 1)
