"""Whatever happens to a real run, what it leaves verifies, and says what happened."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.records.sealed_runs import key_named, lines_of, verified
from tests.e2e.workbench import need_bubblewrap, question

from securebench import load_tester_config, run_tester_config
from securebench.engine import attempt
from securebench.errors import ConfigError
from securebench.progress import Event, ProgressEvent
from securebench.records import keyless

PROSE = {
    "id": "prose",
    "family": "free_response",
    "input": {"prompt": "Say something."},
    "eval": {
        "rubric": {
            "type": "judge",
            "criteria": "Says something.",
            "controls": [{"response": "Something.", "passes": True}, {"response": "Nothing."}],
        },
        "reference_answer": "Something",
    },
}
DEAD = {"base_url": "http://127.0.0.1:9/v1", "model": "none", "timeout_seconds": 1}


class World:
    """A pack, a tester file and a key."""

    def __init__(self, directory: Path, keys: Path, rows: list[dict[str, Any]], **sections: Any) -> None:
        need_bubblewrap()
        self.keys, self.run, self.config = keys, directory / "out", directory / "tester.yaml"
        (directory / "manifest.yaml").write_text("id: real\nversion: 1\n")
        (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.tester: dict[str, Any] = {
            "schema_version": "0.3",
            "run": {"id": "real", "output_dir": "out", "max_workers": 1},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "command", "config": {"command": "echo 'Answer: 42'"}},
            "records": {"key": str(keys / "maker.key")},
            **sections,
        }
        self.write()

    def write(self) -> None:
        self.config.write_text(json.dumps(self.tester))

    def start(self, **options: Any) -> Any:
        return run_tester_config(load_tester_config(self.config), **options)

    def stopped_at(self, event: Event, number: int = 1, **options: Any) -> Any:
        """Started, and interrupted when such an event comes for the given time."""
        seen = 0

        def watch(happened: ProgressEvent) -> None:
            nonlocal seen
            if happened.event is event:
                seen += 1
                if seen == number:
                    os.kill(os.getpid(), signal.SIGINT)

        return self.start(progress=watch, **options)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_WAITS", (0.0, 0.0))


def test_interrupted_run_verifies_and_goes_on(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [question(number) for number in range(8)])
    summary = world.stopped_at(Event.RECORD_WRITTEN, 2)
    assert summary.interrupted
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert result.facts["status"] == "interrupted"
    assert result.facts["recorded"] < 8
    assert not world.start(resume=True).interrupted
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert (result.facts["status"], result.facts["recorded"], result.facts["checkpoints"]) == ("complete", 8, 1)


def test_run_with_faults_of_the_host_verifies_at_every_stage(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [PROSE, *(question(number) for number in range(4))], judge=DEAD)
    assert world.start().errors == 1
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert (result.facts["status"], result.facts["errors"]) == ("interrupted", 1)
    assert any("on which the host failed" in text for text in result.not_proven)
    # Tried again, with the same end: the record before it is superseded, not forgotten.
    assert world.start(resume=True).errors == 1
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert (result.facts["records"], result.facts["recorded"], result.facts["errors"]) == (6, 5, 1)
    assert any("was tried again" in str(note) for note in result.notes)
    assert [line["verification_status"] for line in lines_of(world.run)].count("error") == 2


def test_fault_that_was_not_come_to_again_is_still_counted(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [PROSE, *(question(number) for number in range(3))], judge=DEAD)
    world.start()
    summary = world.stopped_at(Event.PRODUCER_START, resume=True)
    assert summary.interrupted
    assert (summary.errors, summary.passed) == (1, 3)
    assert len(lines_of(world.run)) == 4, "the second start was not stopped in time"
    result = verified(world.run, keys)
    assert result.ok, result.errors


def test_run_nobody_judged_is_complete(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [PROSE, question(1)])
    assert world.start().pending == 1
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert result.facts["status"] == "complete"
    assert "how 1 responses would have been judged: nobody judged them" in result.not_proven


def test_run_that_went_on_under_another_plan_verifies_and_says_so(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [question(number) for number in range(6)])
    world.stopped_at(Event.RECORD_WRITTEN, 2)
    world.tester["sandbox"] = {"memory": "300mb"}
    world.write()
    world.start(resume=True, resume_anyway=True)
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert (result.facts["status"], result.facts["recorded"]) == ("complete", 6)
    assert any("went on under another plan (plan-2.json)" in str(note) for note in result.notes)
    assert any("that all attempts were made under the same terms" in text for text in result.not_proven)


def test_filtered_run_verifies_and_says_so(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [question(number) for number in range(4)])
    world.start(limit=2)
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert result.facts["filtered"]
    assert any("a score on the whole of real: only 2 tasks were chosen" in text for text in result.not_proven)


def test_run_without_a_key_verifies_as_nobodys(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("SECUREBENCH_KEY", raising=False)
    world = World(tmp_path, keys, [question(1)], records={})
    world.start()
    result = verified(world.run, keys)
    assert result.ok, result.errors
    assert result.key is not None
    assert result.key.standing == "ephemeral"
    assert not verified(world.run, keys, key_named("maker", keys).id).ok


def test_run_that_was_not_to_be_signed_does_not_verify(tmp_path: Path, keys: Path) -> None:
    world = World(tmp_path, keys, [question(1)], records={"sign": False})
    world.start()
    [error] = verified(world.run, keys).errors
    assert "seal.json: the run is not sealed" in str(error)


def test_seal_through_sigstore_without_the_extra_is_refused_before_anything_runs(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyless, "find_spec", lambda _: None)
    world = World(tmp_path, keys, [question(1)], records={"sigstore": True})
    with pytest.raises(ConfigError, match=r"securebench\[sigstore\]"):
        world.start()
    assert not world.run.exists()
    world.tester["records"] = {"sigstore": True, "sign": False}
    world.write()
    with pytest.raises(ConfigError, match=r"records\.sigstore signs the seal"):
        world.start()
