"""Negative controls over a pack: what must not score is found, however the work is shared out."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.packs import changed, row, write_pack

from securebench.audit.pack import shares as sharing
from securebench.audit.pack.controls import ControlReport, load_with_controls
from securebench.errors import InfrastructureError, PackError


def rows(count: int) -> list[dict[str, Any]]:
    """Rows of the text families; every fifth asks for the very word its prompt consists of."""
    made = []
    for number in range(count):
        if number % 5 == 0:
            echo = changed(row("free_response", id=f"r{number}"), "input", {"prompt": "harbour"})
            rubric = {"type": "contains_any", "accepted_answers": ["harbour"]}
            made.append(changed(echo, "eval", {"rubric": rubric}))
        else:
            made.append(row("multiple_choice", id=f"r{number}"))
    return made


def children() -> set[str]:
    found: set[str] = set()
    for listed in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found.update(listed.read_text().split())
    return found


def check(directory: Path) -> ControlReport:
    return load_with_controls(directory / "manifest.yaml", directory / "tasks.jsonl")[1]


def test_a_row_that_rewards_an_echo_is_found_with_its_line(tmp_path: Path) -> None:
    report = check(write_pack(tmp_path, rows(6)))
    assert {(violation.task_id, violation.line) for violation in report.violations} == {("r0", 1), ("r5", 6)}
    assert not report.ok


@pytest.mark.parametrize("shares", [2, 3, 4, 7])
def test_sharing_the_work_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: int) -> None:
    directory = write_pack(tmp_path, rows(40))
    alone = check(directory)
    monkeypatch.setattr(sharing, "_shares", lambda _: shares)
    shared = check(directory)
    assert shared.as_json() == alone.as_json()
    assert len(shared.violations) >= 8


def test_a_broken_pack_is_refused_and_no_helper_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_shares", lambda _: 3)
    directory = write_pack(tmp_path, [*rows(9), "{"])
    before = children()
    with pytest.raises(PackError, match=r"tasks\.jsonl:10"):
        check(directory)
    assert children() <= before


def test_a_helper_that_fails_is_not_taken_for_a_clean_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_shares", lambda _: 2)
    monkeypatch.setattr(sharing, "_share", lambda *_: 1 / 0)
    with pytest.raises(InfrastructureError, match="another process"):
        check(write_pack(tmp_path, rows(6)))
