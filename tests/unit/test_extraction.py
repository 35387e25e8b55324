"""Whatever an agent leaves behind becomes an artifact or a candidate's failure."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from securebench import _fs
from securebench.candidates.extraction import MAX_TEXT_BYTES, artifact_for, text_from_file, text_from_stdout
from securebench.errors import CandidateError, FailureReason
from securebench.families.base import CandidateKind


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    with _fs.open_directory(tmp_path) as descriptor:
        yield descriptor


def refused(call: Callable[[], object]) -> FailureReason:
    with pytest.raises(CandidateError) as caught:
        call()
    return caught.value.reason


@pytest.mark.parametrize("text", ["", "answer\n", "ü\0\r\n\u2028", "x" * MAX_TEXT_BYTES])
def test_output_and_file_are_taken_as_they_are(root: int, tmp_path: Path, text: str) -> None:
    (tmp_path / "out").write_bytes(text.encode())
    assert text_from_stdout(text.encode(), truncated=False) == text
    assert text_from_file(root, PurePosixPath("out")) == text


def test_output_that_was_cut_or_is_too_long_is_too_large() -> None:
    assert refused(lambda: text_from_stdout(b"x", truncated=True)) is FailureReason.CANDIDATE_TOO_LARGE
    too_long = b"x" * (MAX_TEXT_BYTES + 1)
    assert refused(lambda: text_from_stdout(too_long, truncated=False)) is FailureReason.CANDIDATE_TOO_LARGE


@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\x80", "x".encode("utf-16"), b"abc\xc3"])
def test_bytes_that_are_not_text_are_refused(root: int, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "out").write_bytes(data)
    assert refused(lambda: text_from_stdout(data, truncated=False)) is FailureReason.CANDIDATE_REFUSED
    assert refused(lambda: text_from_file(root, PurePosixPath("out"))) is FailureReason.CANDIDATE_REFUSED


def _nothing(_: Path) -> None:
    pass


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


def _no_permission(path: Path) -> None:
    path.touch()
    path.chmod(0)
    if os.geteuid() == 0:
        pytest.skip("root may read everything")


@pytest.mark.parametrize(
    "make, reason",
    [
        (_nothing, FailureReason.NO_CANDIDATE),
        (_fifo, FailureReason.CANDIDATE_REFUSED),
        (_socket, FailureReason.CANDIDATE_REFUSED),
        (Path.mkdir, FailureReason.CANDIDATE_REFUSED),
        (_large, FailureReason.CANDIDATE_TOO_LARGE),
        (_no_permission, FailureReason.CANDIDATE_REFUSED),
        (lambda path: path.symlink_to("/etc/hostname"), FailureReason.CANDIDATE_REFUSED),
        (lambda path: path.symlink_to("/dev/zero"), FailureReason.CANDIDATE_REFUSED),
        (lambda path: path.symlink_to("nothing"), FailureReason.CANDIDATE_REFUSED),
        (lambda path: path.symlink_to(path.name), FailureReason.CANDIDATE_REFUSED),
    ],
)
def test_hostile_artifact_is_the_candidates_failure(
    root: int, tmp_path: Path, make: Callable[[Path], None], reason: FailureReason
) -> None:
    make(tmp_path / "out")
    assert refused(lambda: text_from_file(root, PurePosixPath("out"))) is reason


def test_linked_parent_is_not_followed(root: int, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/out").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert refused(lambda: text_from_file(root, PurePosixPath("link/out"))) is FailureReason.CANDIDATE_REFUSED
    assert text_from_file(root, PurePosixPath("real/out")) == "x"


def test_hard_link_is_a_file_like_any_other(root: int, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    os.link(tmp_path / "a", tmp_path / "out")
    assert text_from_file(root, PurePosixPath("out")) == "x"


@pytest.mark.parametrize(
    "kind, field", [(CandidateKind.TEXT, "text"), (CandidateKind.CODE, "text"), (CandidateKind.PATCH, "patch")]
)
def test_artifact_holds_its_text_where_its_kind_says(kind: CandidateKind, field: str) -> None:
    artifact = artifact_for("t", kind, "ü", "stdout")
    assert getattr(artifact, field) == artifact.content == "ü"
    assert artifact.size == 2
    assert artifact.digest == artifact_for("other", kind, "ü", "file").digest
    assert artifact.digest != artifact_for("t", kind, "u", "stdout").digest
