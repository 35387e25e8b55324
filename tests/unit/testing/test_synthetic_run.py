"""Runs that never ran are runs all the same: nothing is wrong with them, and a change to one is found."""

from __future__ import annotations

from pathlib import Path

from securebench.evidence.verify import verify_run
from securebench.records.store import RECORDS_FILE, read_records
from securebench.testing.synthetic_run import SyntheticRun, write_run


def test_synthetic_run_verifies(tmp_path: Path) -> None:
    result = verify_run(write_run(tmp_path / "run", SyntheticRun(tasks=40, attempts=2)), {})
    assert result.errors == []
    assert (result.facts["status"], result.facts["recorded"]) == ("complete", 80)
    assert 0 < result.facts["passed"] < 80


def test_faults_of_the_host_leave_it_unfinished(tmp_path: Path) -> None:
    result = verify_run(write_run(tmp_path / "run", SyntheticRun(tasks=40, faults=0.2)), {})
    assert result.errors == []
    assert result.facts["status"] == "interrupted"
    assert result.facts["errors"] > 0


def test_what_is_altered_before_it_is_written_is_sound_and_afterwards_is_not(tmp_path: Path) -> None:
    def plant(record: dict[str, object]) -> None:
        record["candidate_text"] = "\x1b planted"
        record["candidate_patch"] = None

    directory = write_run(tmp_path / "run", SyntheticRun(tasks=3, attempts=1, alter=plant))
    assert verify_run(directory, {}).ok
    assert {record["candidate_text"] for _, _, record in read_records(directory / RECORDS_FILE)} == {"\x1b planted"}
    data = (directory / RECORDS_FILE).read_bytes()
    (directory / RECORDS_FILE).write_bytes(data.replace(b"planted", b"changed", 1))
    assert not verify_run(directory, {}).ok
