"""Candidates that try what only a cluster would let them: to be too much for the way between head and nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.world import World
from tests.e2e.workbench import need_bubblewrap
from tests.unit.workspaces.git_cases import write_files

from securebench.cluster import remote
from securebench.engine.executors import wire

PATCH: dict[str, Any] = {
    "id": "p",
    "family": "repo_patch",
    "input": {"repo": "repo", "base_commit": "x", "instructions": "Fix it."},
    "eval": {"tests": {"source": "command", "command": ["grep", "-rq", "fixed", "."]}},
    "assets": [{"path": "repo"}],
}
SMALL = 16 * 2**20  # bytes of a frame in these tests


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    need_bubblewrap()
    made = World(tmp_path / "w")
    write_files(made.directory / "assets" / "repo", {"src/app.py": "broken\n"})
    yield made
    made.end()


def customized(world: World, code: str) -> dict[str, str]:
    """Variables with which a node runs this before everything else."""
    place = world.temporary / "custom"
    place.mkdir()
    (place / "sitecustomize.py").write_text(code)
    path = [str(place), *(entry for entry in sys.path if Path(entry).is_absolute())]
    return {"PYTHONPATH": os.pathsep.join(path)}


@pytest.fixture
def small_frames(world: World, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The limit of a frame, lowered here and on nodes with these variables."""
    for module in (wire, remote):
        monkeypatch.setattr(module, "MAX_FRAME", SMALL)
    return customized(world, f"import securebench.engine.executors.wire as wire; wire.MAX_FRAME = {SMALL}")


MANY = """
import os
os.umask(0)
open('src/app.py', 'w').write('fixed')
for _ in range(4):
    os.mkdir('"' * 250)
    os.chdir('"' * 250)
for number in range(8000):
    os.close(os.open('"' * 240 + str(number), os.O_CREAT | os.O_WRONLY))
"""


def test_a_patch_of_more_paths_than_fit_a_frame_is_judged_as_any_other(
    world: World, small_frames: dict[str, str]
) -> None:
    assert SMALL < 8000 * 2 * (4 * 250 + 240), "what it changed would not fit"
    world.add("n", **small_frames)
    (record,) = world.run([PATCH], ["/usr/bin/python3", "-c", MANY])
    assert record["passed"], record["failure_message"]
    assert record["repeats"] == []
    assert not any("refused" in notice for notice in world.notices)


def test_what_is_too_large_to_be_told_is_the_candidates_failure_and_its_node_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that says so itself, because its limit is the lower one."""
    env = customized(world, "import securebench.engine.executors.wire as wire; wire.MAX_FRAME = 2**21")
    world.add("n", **env)
    rows = [PATCH, {**PATCH, "id": "q"}]
    much = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr '\\0' '\"' > f$i; i=$((i+1)); done"
    records = world.run(rows, much)
    assert [record["failure_reason"] for record in records] == ["candidate_too_large"] * 2
    assert [record["verification_status"] for record in records] == ["failed"] * 2
    assert not any("refused" in notice for notice in world.notices)


def test_what_is_too_large_to_be_ordered_is_the_candidates_failure(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MAX_FRAME", 2**20)
    world.add("n")
    much = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr '\\0' '\"' > f$i; i=$((i+1)); done"
    (record,) = world.run([PATCH], much)
    assert (record["verification_status"], record["failure_reason"]) == ("failed", "candidate_too_large")
    assert record["repeats"] == []
