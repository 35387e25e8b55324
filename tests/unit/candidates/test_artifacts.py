"""Candidates as artifacts: what they are made of, what their digest pins, and how trees become them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.candidates.trees import capture, changes, stored, write

from securebench.candidates import rendering
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.line_diff import Effort
from securebench.candidates.rendering import MAX_FILE, render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Change, Delta, TreeEntry
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


def test_ignored_files_that_were_there_count_and_new_ones_do_not(store: CandidateStore, tmp_path: Path) -> None:
    pristine = stored({"src/a": b"1", "out/b.o": b"2", "out/c": b"3", "gone/d.o": b"4"}, store, tmp_path / "pristine")
    work = write(
        tmp_path / "work", {"src/a": b"new", "out/c": b"3", "out/b.o": b"changed", "out/e.o": b"5", "f.o/g": b""}
    )
    artifact = changes(work, pristine, store, b"*.o\n")
    assert artifact.delta is not None
    assert artifact.delta.paths == ("gone", "gone/d.o", "out/b.o", "src/a")
    assert {"out/e.o", "f.o"} <= {item["path"] for item in artifact.metadata["capture"]["left_out"]}
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
    assert (changes(work, pristine, store).patch or "").count("\n") > 40_000


def test_many_very_different_texts_are_rendered_with_a_bound_on_the_work(
    store: CandidateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of a repository rewritten: comparing each as well as possible would take minutes."""

    def text(number: int) -> TreeEntry:
        data = "".join(f"{number} {line}\n" for line in range(300)).encode()
        return TreeEntry.file("x", store.put(data), len(data))

    pairs = [(text(number), text(-1 - number)) for number in range(6)]
    delta = Delta(
        changed=tuple(Change(a._replace(path=f"f{n}"), b._replace(path=f"f{n}")) for n, (a, b) in enumerate(pairs))
    )
    whole = render(delta, store.read)
    began = Effort(400_000)
    left: list[int] = []

    def measured(allowed: int) -> Effort:
        left.append(allowed)
        return began

    monkeypatch.setattr(rendering, "Effort", measured)
    bounded = render(delta, store.read)
    assert bounded.text == whole.text, "nothing in common: replaced as a whole either way"
    assert left == [rendering.MAX_WORK]
    assert -100_000 < began.left < 100_000, "what there was has been used, and not more"


def test_contents_are_read_for_a_rendering_up_to_a_bound(
    store: CandidateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MAX_READ", 10_000)
    noise = [os.urandom(4000) for _ in range(5)]
    files = tuple(TreeEntry.file(f"n{number}", store.put(data), 4000) for number, data in enumerate(noise))
    read: list[str] = []

    def counting(digest: str, limit: int) -> bytes:
        read.append(digest)
        return store.read(digest, limit)

    rendered = render(Delta(added=files), counting)
    assert len(read) == 2
    assert rendered.omitted == ("n2", "n3", "n4")
