"""Take a candidate over from a stopped sandbox: text from standard output or one file, a whole workspace, or what
changed in a repository. Bounded, following no link; no git runs on what an agent wrote.

Whatever an agent leaves behind ends in an artifact or in a CandidateError; nothing here can be made to fail
in a way that would count as the host's fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from securebench import _fs
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.captured import Budget, Captured
from securebench.candidates.path_patterns import PathPatterns
from securebench.candidates.reader import Progress, read_tree
from securebench.candidates.rendering import render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import EntryKind, Tree, delta_between
from securebench.errors import CandidateError, FailureReason
from securebench.families.base import CandidateKind

MAX_TEXT_BYTES = 1024 * 1024
OWN_GIT_DIRECTORY = "/.git"
"""The agent's repository itself. What it committed, staged or stashed is in no candidate; its files are."""
_DEFAULT = Budget()


def text_from_stdout(data: bytes, truncated: bool) -> str:
    """The whole standard output as the candidate. Raises CandidateError."""
    if truncated or len(data) > MAX_TEXT_BYTES:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"the output exceeds {MAX_TEXT_BYTES} bytes")
    return _decode(data, "the output")


def text_from_file(root: int, path: PurePosixPath) -> str:
    """One declared file beneath a directory descriptor. Raises CandidateError.

    The walk opens one component at a time and follows nothing, so a link, FIFO or device is refused by name."""
    try:
        with _fs.open_beneath(root, path) as descriptor:
            data = _fs.read_bounded(descriptor, MAX_TEXT_BYTES, str(path))
    except _fs.TooLarge as error:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, str(error)) from error
    except _fs.Missing as error:
        raise CandidateError(FailureReason.NO_CANDIDATE, str(error)) from error
    except _fs.UnsafeEntry as error:
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, str(error)) from error
    return _decode(data, str(path))


def artifact_for(task_id: str, kind: CandidateKind, text: str, source: str) -> CandidateArtifact:
    """The extracted text as the kind of candidate its family collects."""
    metadata = {"source": source}
    if kind is CandidateKind.PATCH:
        return CandidateArtifact(task_id, kind, patch=text, metadata=metadata)
    return CandidateArtifact(task_id, kind, text=text, metadata=metadata)


def workspace_artifact(
    task_id: str,
    root: int,
    store: CandidateStore,
    budget: Budget = _DEFAULT,
    exclude: PathPatterns | None = None,
    progress: Progress | None = None,
) -> CandidateArtifact:
    """The whole tree at a directory descriptor, stored. Raises CandidateError when it exceeds a budget."""
    captured = read_tree(root, store, budget, exclude, progress)
    return CandidateArtifact(
        task_id,
        CandidateKind.WORKSPACE,
        workspace=store.save(captured.tree),
        metadata={"source": "workspace", "capture": captured.as_record()},
        workspace_bytes=captured.tree.total_bytes,
    )


def change_artifact(
    task_id: str,
    root: int,
    pristine: Tree,
    store: CandidateStore,
    budget: Budget = _DEFAULT,
    exclude: PathPatterns | None = None,
    progress: Progress | None = None,
) -> CandidateArtifact:
    """What the tree at a directory descriptor changes of `pristine`, whatever the agent's git says about it.

    What `exclude` covers is as it was, unless the directory it lay in is gone. Raises CandidateError when a budget is
    exceeded."""
    excluded = PathPatterns.of((OWN_GIT_DIRECTORY, *(exclude.patterns if exclude is not None else ())))
    captured = read_tree(root, store, budget, excluded, progress)
    seen = Captured(_with_excluded(captured.tree, pristine, excluded), captured.left_out)
    return delta_artifact(task_id, pristine, seen, store, {"source": "tree"})


def delta_artifact(
    task_id: str, pristine: Tree, captured: Captured, store: CandidateStore, metadata: Mapping[str, Any]
) -> CandidateArtifact:
    """The delta of two stored trees as a candidate, with its rendering."""
    delta = delta_between(pristine, captured.tree)
    rendered = render(delta, store.read)
    capture = captured.as_record() | {"pristine": pristine.digest, "not_rendered": list(rendered.omitted)}
    store.save(captured.tree)
    return CandidateArtifact(
        task_id, CandidateKind.PATCH, patch=rendered.text, delta=delta, metadata={**metadata, "capture": capture}
    )


def _with_excluded(captured: Tree, pristine: Tree, excluded: PathPatterns) -> Tree:
    entries = list(captured.entries)
    directories = {""} | {entry.path for entry in entries if entry.kind is EntryKind.DIRECTORY}
    for entry in pristine.entries:
        if entry.path.rpartition("/")[0] in directories and excluded.match(entry.path) is not None:
            entries.append(entry)
            if entry.kind is EntryKind.DIRECTORY:
                directories.add(entry.path)
    return Tree.of(entries)


def _decode(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{what} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start})"
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, message) from error
