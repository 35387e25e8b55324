"""Take text over from a stopped sandbox: its standard output, or one file. Bounded, following no link. Whole workspaces
and what changed in a repository are taken by `workspaces.workspace`.

Whatever an agent leaves behind ends in a text or in a CandidateError; nothing here can be made to fail in a way that
would count as the host's fault."""

from __future__ import annotations

from pathlib import PurePosixPath

from securebench import _fs
from securebench.candidates.artifact import CandidateArtifact
from securebench.errors import CandidateError, FailureReason
from securebench.families.base import CandidateKind

MAX_TEXT_BYTES = 1024 * 1024
MAX_PATCH_BYTES = 16 * 2**20
"""Of a patch that was made elsewhere: as much as any that is rendered here may have, so that it is taken again."""


def text_from_stdout(data: bytes, truncated: bool) -> str:
    """The whole standard output as the candidate. Raises CandidateError."""
    return checked_text(data, "the output", truncated)


def checked_text(data: bytes, what: str, truncated: bool = False, most: int = MAX_TEXT_BYTES) -> str:
    """Text that is not too long to be one. Raises CandidateError that begins with `what`."""
    if truncated or len(data) > most:
        raise CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"{what} exceeds {most} bytes")
    return _decode(data, what)


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


def _decode(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{what} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start})"
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, message) from error
