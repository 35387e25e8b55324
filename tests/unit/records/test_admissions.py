"""Admissions: about one pack, free of contradictions, and what was signed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from securebench.errors import IntegrityError
from securebench.records.admissions import (
    ADMISSION,
    SEAL,
    Admission,
    RowAdmission,
    count,
    load_admission,
    write_admission,
)
from securebench.records.keys import load_signing_key

DIGEST = "sha256:" + "a" * 64
ROWS = (
    RowAdmission(id="good", admitted=True, reference="passed", mutants=4, noticed=3),
    RowAdmission(id="bad", admitted=False, reference="passed", without_work=("always returns 0",)),
    RowAdmission(id="gone", admitted=False, reference="failed", excluded=True),
)


def admission(**changes: Any) -> Admission:
    fields: dict[str, Any] = {
        "pack": "p",
        "version": 1,
        "digest": DIGEST,
        "securebench": "0.1.0 sha256:" + "b" * 64,
        "sandbox": "bubblewrap",
        "mutants_each": 4,
        "seed": 0,
        "counts": count(ROWS),
        "constants": {},
        "rows": ROWS,
    }
    return Admission(**(fields | changes))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert load_admission(tmp_path, DIGEST) is None
    write_admission(tmp_path, admission(), None)
    stored = load_admission(tmp_path, DIGEST)
    assert stored is not None
    assert stored.admission == admission()
    assert stored.key is None
    assert [row.id for row in stored.admission.failing] == ["bad"]


def test_signature_says_whose_it_is(tmp_path: Path) -> None:
    key = load_signing_key(directory=tmp_path / "keys", environ={})
    write_admission(tmp_path, admission(), key)
    stored = load_admission(tmp_path, DIGEST)
    assert stored is not None
    assert stored.key is not None
    assert (stored.key.id, stored.key.ephemeral) == (key.id, True)


def test_admission_of_another_pack_is_refused(tmp_path: Path) -> None:
    write_admission(tmp_path, admission(), None)
    with pytest.raises(IntegrityError, match="about another pack"):
        load_admission(tmp_path, "sha256:" + "c" * 64)


def changed(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value["counts"].update(admitted=3), "counts other rows"),
        (lambda value: value["rows"][1].update(admitted=True), "counts other rows"),
        (
            lambda value: (value["rows"][1].update(admitted=True), value["counts"].update(admitted=2)),
            "its trials do not",
        ),
        (lambda value: value["rows"][0].update(noticed=9), "counts other rows"),
        (lambda value: value["rows"].append(value["rows"][0]), "counts other rows"),
        (lambda value: value.update(note="x"), "not an admission"),
        (lambda value: value["rows"][0].update(reference="fine"), "not an admission"),
    ],
)
def test_admission_that_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[Any], None], message: str
) -> None:
    write_admission(tmp_path, admission(), None)
    changed(tmp_path / ADMISSION, change)
    with pytest.raises(IntegrityError, match=message):
        load_admission(tmp_path, DIGEST)


def test_what_was_changed_after_it_was_signed_is_refused(tmp_path: Path) -> None:
    write_admission(tmp_path, admission(), load_signing_key(directory=tmp_path / "keys", environ={}))

    def hide(value: Any) -> None:
        """Without contradicting itself."""
        del value["rows"][1]
        value["counts"] = count(tuple(RowAdmission.model_validate_json(json.dumps(row)) for row in value["rows"]))

    changed(tmp_path / ADMISSION, hide)
    with pytest.raises(IntegrityError, match=r"admission\.json is not the one that was signed"):
        load_admission(tmp_path, DIGEST)
    (tmp_path / SEAL).unlink()
    stored = load_admission(tmp_path, DIGEST)  # nobody vouches for it any more, and that shows
    assert stored is not None
    assert stored.key is None


def test_seal_of_another_admission_is_refused(tmp_path: Path) -> None:
    key = load_signing_key(directory=tmp_path / "keys", environ={})
    for name, version in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        write_admission(tmp_path / name, admission(version=version), key)
    (tmp_path / "two" / SEAL).replace(tmp_path / "one" / SEAL)
    with pytest.raises(IntegrityError, match="not the one that was signed"):
        load_admission(tmp_path / "one", DIGEST)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b'{"a": ' * 5000])
def test_any_bytes_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ADMISSION).write_bytes(data)
    with pytest.raises(IntegrityError):
        load_admission(tmp_path, DIGEST)
