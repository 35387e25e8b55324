"""Candidates as artifacts: what they are made of, what their digest pins, and how trees become them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.candidates.trees import Link, capture, stored, write

from securebench._fs import open_directory
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.captured import Budget
from securebench.candidates.extraction import change_artifact, workspace_artifact
from securebench.candidates.path_patterns import PathPatterns
from securebench.candidates.rendering import MAX_FILE, render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta, TreeEntry, apply_delta
from securebench.errors import CandidateError
from securebench.families.base import CandidateKind


@dataclass(frozen=True)
class Task:
    id: str
    candidate_kind: str


def test_candidate_of_a_task_is_what_its_family_collects(store: CandidateStore, tmp_path: Path) -> None:
    captured = capture(write(tmp_path / "tree", {"a": b"123"}), store)
    text = CandidateArtifact.for_task(Task("t", "text"), text="ü", metadata={"source": "stdout"})
    assert (text.kind, text.size, text.content) == (CandidateKind.TEXT, 2, "ü")
    patch = CandidateArtifact.for_task(Task("t", "patch"), patch="diff", delta=Delta())
    assert (patch.digest, patch.size, patch.content) == (Delta().digest, 0, "diff")
    workspace = CandidateArtifact.for_task(Task("t", "workspace"), workspace=captured)
    assert (workspace.digest, workspace.size, workspace.workspace) == (captured.tree.digest, 3, captured.tree.digest)
    for kind, given in (
        ("text", {"patch": "x"}),
        ("patch", {"text": "x"}),
        ("workspace", {}),
        ("code", {"delta": Delta()}),
    ):
        with pytest.raises(ValueError, match="cannot be made of"):
            CandidateArtifact.for_task(Task("t", kind), **given)  # type: ignore[arg-type]


def test_workspace_is_stored_and_described(store: CandidateStore, tmp_path: Path) -> None:
    root = write(tmp_path / "tree", {"a/b": b"123", "out": Link("/etc/passwd")})
    with open_directory(root) as descriptor:
        artifact = workspace_artifact("t", descriptor, store)
        with pytest.raises(CandidateError):
            workspace_artifact("t", descriptor, store, Budget(total_bytes=2))
    assert artifact.workspace is not None
    assert CandidateStore(store.directory).load(artifact.workspace).get("a/b") is not None
    assert artifact.size == 3
    assert artifact.metadata["capture"]["left_out"] == [{"path": "out", "reason": "a link to an absolute path"}]


def test_excluded_paths_are_as_they_were(store: CandidateStore, tmp_path: Path) -> None:
    pristine = stored({"src/a": b"1", "out/b.o": b"2", "out/c": b"3", "gone/d.o": b"4"}, store, tmp_path / "pristine")
    work = write(
        tmp_path / "work", {"src/a": b"new", "out/c": b"3", "out/b.o": b"changed", "out/e.o": b"5", "f.o/g": b""}
    )
    with open_directory(work) as root:
        artifact = change_artifact("t", root, pristine, store, exclude=PathPatterns.of(["*.o"]))
    assert artifact.delta is not None
    assert artifact.delta.paths == ("gone", "gone/d.o", "src/a")
    result = apply_delta(pristine, artifact.delta)
    assert store.read(result.get("out/b.o").digest, 10) == b"2"  # type: ignore[union-attr]
    assert "diff --git a/src/a b/src/a" in (artifact.patch or "")


def test_rendering_names_what_it_leaves_out(store: CandidateStore) -> None:
    large = TreeEntry.file("large", store.put(bytes(10)), MAX_FILE + 1)
    texts = [TreeEntry.file(f"t{number}", store.put(b"x" * 1000 + b"%d\n" % number), 1002) for number in range(5)]
    rendered = render(Delta(added=(large, *texts)), store.read, limit=3500)
    assert rendered.omitted == ("large", "t3", "t4")
    assert rendered.text.count("diff --git") == 3


def test_very_different_large_texts_are_rendered_in_bounded_time(store: CandidateStore, tmp_path: Path) -> None:
    old = "".join(f"{os.urandom(4).hex()}\n" for _ in range(20_000)).encode()
    new = "".join(f"{os.urandom(4).hex()}\n" for _ in range(20_000)).encode()
    pristine = stored({"a": old}, store, tmp_path / "one")
    work = write(tmp_path / "two", {"a": new})
    with open_directory(work) as root:
        artifact = change_artifact("t", root, pristine, store)
    assert (artifact.patch or "").count("\n") > 40_000
