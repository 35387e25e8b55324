"""Run directories that a stranger hands over: record lines, torn or forged, and signed envelopes."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from securebench.errors import IntegrityError, StoreError
from securebench.records.dsse import decode_envelope
from securebench.records.store import RECORDS_FILE, RecordStore, read_records

HEAD = "sha256:" + "0" * 64


@cache
def _directory() -> Path:
    place = Path(tempfile.mkdtemp(prefix="securebench-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def records(data: bytes) -> None:
    """Only our own errors; recovery keeps a prefix of the bytes and sets aside exactly the rest."""
    run = _directory() / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    path = run / RECORDS_FILE
    path.write_bytes(data)
    try:
        for _, line, _ in read_records(path):
            assert line.endswith(b"\n")
    except (IntegrityError, StoreError):
        pass
    with RecordStore(run) as store:
        kept = path.read_bytes()
        assert data.startswith(kept)
        assert kept.endswith(b"\n") or not kept
        aside = b"".join(other.read_bytes() for other in run.iterdir() if other.name.startswith(f"{RECORDS_FILE}."))
        assert kept + aside == data
        store.begin(HEAD)
        try:
            count = sum(1 for _ in store.records())
        except IntegrityError:
            return
        assert count == kept.count(b"\n")
        assert store.count == count


def envelope(data: bytes) -> None:
    """What is accepted is written in exactly one way, so that no byte can change unnoticed."""
    try:
        found = decode_envelope(data, "seal")
    except IntegrityError:
        return
    assert found.encode() == data.removesuffix(b"\n")
