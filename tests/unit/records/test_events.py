"""The journal of a run: every event but agents' output, readable whatever a crash did to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from securebench.errors import StoreError
from securebench.progress import Event, ProgressEvent, Unbreakable
from securebench.records.events import MAX_EVENT, EventLog, encode_event, lost_starts, started_attempts


def event(kind: Event, task: str | None = "t", attempt: int = 1, **data: Any) -> ProgressEvent:
    return ProgressEvent(kind, task, None if task is None else attempt, data, time=1.5)


def write(path: Path, *events: ProgressEvent) -> None:
    with EventLog(path) as log:
        for one in events:
            log(one)


def test_every_event_is_a_line_but_what_agents_print(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = [event(kind, text="x") for kind in Event]
    write(path, *events)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines == [one.as_json() for one in events if one.event is not Event.PRODUCER_OUTPUT]


def test_starts_are_counted_over_several_starts_of_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, event(Event.AGENT_STARTED, "a"), event(Event.AGENT_STARTED, "b"), event(Event.RECORD_WRITTEN, "b"))
    write(path, event(Event.AGENT_STARTED, "a"), event(Event.AGENT_STARTED, "a", 2), event(Event.RUN_DONE, None))
    assert started_attempts(path) == {("a", 1): 2, ("b", 1): 1, ("a", 2): 1}
    assert lost_starts(path) == {("a", 1): 2, ("a", 2): 1}


def test_record_of_an_agent_that_never_started_takes_no_later_start_away(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, event(Event.RECORD_WRITTEN, "a"), event(Event.AGENT_STARTED, "a"))
    assert lost_starts(path) == {("a", 1): 1}


@pytest.mark.parametrize(
    "garbage",
    [
        b'{"event":"agent_started","task_id":"z","atte',
        b"\x00\xff agent_started\n",
        b"[" * 10_000 + b" agent_started\n",
        b'{"event":"agent_started","task_id":5,"attempt":1}\n',
        b'{"event":"agent_started","task_id":"z","attempt":true}\n',
        b'{"event":["agent_started"],"task_id":"z","attempt":1}\n',
        b'["agent_started"]\n',
        b'"agent_started"\n',
        b'{"event":"task_start","task_id":"agent_started","attempt":1}\n',
        b"x" * 100_000 + b"\n",
    ],
)
def test_torn_and_senseless_lines_are_passed_over(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "events.jsonl"
    write(path, event(Event.AGENT_STARTED, "a"))
    with path.open("ab") as file:
        file.write(garbage)
    write(path, event(Event.AGENT_STARTED, "b"))
    assert started_attempts(path) == {("a", 1): 1, ("b", 1): 1}


def test_torn_tail_that_is_a_whole_object_but_for_its_line_end_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(encode_event(event(Event.AGENT_STARTED, "a"))[:-1])
    assert started_attempts(path) == Counter()


def test_no_journal_means_nothing_was_started(tmp_path: Path) -> None:
    assert started_attempts(tmp_path / "events.jsonl") == Counter()
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(StoreError):
        started_attempts(tmp_path / "events.jsonl")


@pytest.mark.parametrize(
    "data",
    [
        {"argv": ["x" * 100_000], "seconds": 1},
        {"message": "ü" * 100_000},
        {f"key{number}": "x" * 500 for number in range(1000)},
        {"x" * 100_000: 1},
    ],
)
def test_line_is_never_longer_than_allowed_and_keeps_its_place(data: dict[str, Any]) -> None:
    line = encode_event(event(Event.SANDBOX_COMMAND, **data))
    value = json.loads(line)
    assert len(line) <= MAX_EVENT
    assert (value["event"], value["task_id"], value["attempt"], value["cut"]) == ("sandbox_command", "t", 1, True)


def test_killed_engine_loses_no_event_it_told_of(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    program = (
        "import sys, itertools; from pathlib import Path; from securebench.progress import *; "
        "from securebench.records.events import EventLog\n"
        "with EventLog(Path(sys.argv[1])) as log:\n"
        "  for n in itertools.count(1):\n"
        "    log(ProgressEvent(Event.AGENT_STARTED, 't', n)); print(n, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(20)]
        time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        told = int([*lines, *process.stdout.readlines()][-1])
    assert len(started_attempts(path)) >= told >= 20


def test_link_in_the_place_of_the_journal_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError), EventLog(tmp_path / "events.jsonl"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_full_disk_ends_the_journal_and_not_the_run() -> None:
    log = EventLog(Path("/dev/full"))
    with pytest.raises(StoreError), log:
        pass
    log._file = os.open("/dev/full", os.O_WRONLY)
    listener = Unbreakable(log)
    for _ in range(3):
        listener(event(Event.TASK_START))
    log.__exit__()


def test_large_journal_is_read_soon(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    kinds = [Event.TASK_START, Event.AGENT_STARTED, Event.SANDBOX_COMMAND, Event.TASK_DONE, Event.RECORD_WRITTEN]
    path.write_bytes(
        b"".join(encode_event(event(kind, f"t{n}", argv=["x"] * 20)) for n in range(20_000) for kind in kinds)
    )
    began = time.process_time()
    assert lost_starts(path) == Counter()
    assert time.process_time() - began < 5
