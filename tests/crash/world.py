"""A run whose engine is killed again and again, and how its directory and the host are looked at in between.

What must hold of the records is computed here from the bytes alone, by none of the engine's code."""

from __future__ import annotations

import atexit
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.workbench import CLI, question

WORKERS = 8
Moment = Callable[["KilledRun", subprocess.Popen[bytes]], bool]
"""Waits; whether the engine still lived when the moment came."""


@dataclass
class KilledRun:
    """One run directory with all the engines that worked on it."""

    directory: Path
    rows: list[dict[str, Any]]
    attempts: int = 1
    command: str | list[str] = "sleep 0.02; echo 42"
    sandbox: dict[str, Any] = field(default_factory=dict)
    output: Path = Path()
    temporary: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="crash-")))
    pids: list[int] = field(default_factory=list)
    started: int = 0
    kept: bytes = b""
    torn: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)
        self.temporary.chmod(0o755)  # users that sandboxes are given must pass
        atexit.register(shutil.rmtree, self.temporary, ignore_errors=True)
        self.output = self.directory / "out" if self.output == Path() else self.output
        (self.directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        (self.directory / "manifest.yaml").write_text("id: crash\nversion: 1\n")
        tester = {
            "schema_version": "0.3",
            "run": {"id": "crash", "output_dir": str(self.output), "attempts": self.attempts},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": {"type": "command", "config": {"command": self.command}},
            "sandbox": self.sandbox,
        }
        (self.directory / "tester.yaml").write_text(json.dumps(tester))

    @property
    def total(self) -> int:
        return len(self.rows) * self.attempts

    @property
    def records_path(self) -> Path:
        return self.output / "candidates.jsonl"

    @property
    def log(self) -> Path:
        return self.directory / "stderr"

    def start(self, *words: str, workers: int = WORKERS, **env: str) -> subprocess.Popen[bytes]:
        """The real command, told to continue; its events go to a file."""
        self.started = time.time_ns()
        argv = [*CLI, "run", "--config", str(self.directory / "tester.yaml"), "--resume", "--json"]
        with self.log.open("wb") as log, (self.directory / "stdout").open("wb") as out:
            engine = subprocess.Popen(
                [*argv, "--workers", str(workers), "--progress", "json", *words],
                stdout=out,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self.temporary), **env},
                start_new_session=True,
            )
        self.pids.append(engine.pid)
        return engine

    def records(self) -> bytes:
        try:
            return self.records_path.read_bytes()
        except FileNotFoundError:
            return b""

    def finish(self, *words: str, workers: int = WORKERS, **env: str) -> int:
        """Start it once more and let it come to its end; its exit code."""
        return self.start(*words, workers=workers, **env).wait(300)

    def parsed(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.records().splitlines()]

    def said(self) -> str:
        """The end of what the last engine wrote to its standard error."""
        return self.log.read_text()[-3000:]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of that name that the last engine reported, as far as it came."""
        lines = [line for line in self.log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        events = [json.loads(line) for line in lines if line.startswith(b"{")]
        return [event for event in events if event["event"] == name]

    def notices(self) -> list[str]:
        return [event["message"] for event in self.events("run_notice")]

    def began(self) -> bool:
        """Whether the last engine has come to carrying out the plan."""
        return bool(self.events("run_start"))

    def wrote(self, name: str) -> bool:
        """Whether the last engine has written that file."""
        try:
            return (self.output / name).stat().st_mtime_ns > self.started
        except FileNotFoundError:
            return False

    def stage(self) -> str:
        """How far the last engine came."""
        if self.wrote("seal.json"):
            return "sealed"
        if self.wrote("summary.json"):
            return "sealing"
        if self.records().count(b"\n") == self.total:
            return "summing up"
        if self.began():
            return "at work"
        return "starting" if self.wrote(".lock") or self.wrote("plan.json") else "loading"

    def tear(self, data: bytes) -> None:
        """What a machine that lost its power leaves, and a killed process hardly ever does: half a line."""
        with self.records_path.open("ab") as file:
            file.write(data)
        self.torn.append(data)

    def check_kept(self) -> None:
        """Nothing that stood in the file is gone or changed, and what is there is chained from the plan on."""
        data = self.records()
        whole = data[: data.rfind(b"\n") + 1]
        assert whole.startswith(self.kept), "records that were there are gone or were changed"
        self.kept = whole
        check_chain(self.output, whole)

    def check_torn(self) -> None:
        """Every half line was set aside, byte for byte."""
        aside = [path.read_bytes() for path in self.output.glob("candidates.jsonl.torn-*")]
        assert sorted(aside) == sorted(self.torn)


def check_chain(output: Path, data: bytes) -> list[dict[str, Any]]:
    """The records, each of which names the bytes before it, the first one those of the plan; each attempt once."""
    records = []
    before = (output / "plan.json").read_bytes() if (output / "plan.json").exists() else b""
    for line in data.splitlines(keepends=True):
        record = json.loads(line)
        assert record["previous"] == "sha256:" + hashlib.sha256(before).hexdigest()
        records.append(record)
        before = line
    keys = [(record["task_id"], record["attempt"]) for record in records]
    assert len(keys) == len(set(keys)), "an attempt is recorded twice"
    return records


def questions(count: int) -> list[dict[str, Any]]:
    return [question(number) for number in range(count)]


def after(seconds: float) -> Moment:
    def moment(run: KilledRun, engine: subprocess.Popen[bytes]) -> bool:
        try:
            engine.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    return moment


def once(seen: Callable[[KilledRun], bool], jitter: float) -> Moment:
    """So many seconds after something can be seen in the run directory."""

    def moment(run: KilledRun, engine: subprocess.Popen[bytes]) -> bool:
        while not seen(run):
            if engine.poll() is not None:
                return False
            time.sleep(0.0005)
        time.sleep(jitter)
        return engine.poll() is None

    return moment


def written(count: int) -> Callable[[KilledRun], bool]:
    """So many records are in the file."""
    state = {"size": -1, "enough": False}

    def seen(run: KilledRun) -> bool:
        try:
            size = run.records_path.stat().st_size
        except FileNotFoundError:
            return False
        if size != state["size"]:
            state.update(size=size, enough=run.records().count(b"\n") >= count)
        return bool(state["enough"])

    return seen


def kill(engine: subprocess.Popen[bytes]) -> None:
    """The engine alone; all that it started must end by itself."""
    engine.send_signal(signal.SIGKILL)
    engine.wait(60)


def leftovers(pids: list[int], temporary: Path) -> dict[str, list[str]]:
    """Everything on this host that belongs to engines that no longer live."""
    names = re.compile(rb"securebench-(%s)-" % b"|".join(b"%d" % pid for pid in pids))
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if names.search((entry / "environ").read_bytes()) or names.search((entry / "cmdline").read_bytes()):
                processes.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    places = ("*", "*/*", "*/*/*")
    groups = [name for place in places for name in glob.glob(f"{place}/securebench-*", root_dir="/sys/fs/cgroup")]
    mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return {
        "processes": processes,
        "directories": [path.name for path in temporary.iterdir()],
        "groups": [name for name in groups if names.search(name.encode())],
        "mounts": [mount.decode("utf-8", "replace") for mount in mounts if names.search(mount)],
    }


NOTHING: dict[str, list[str]] = {"processes": [], "directories": [], "groups": [], "mounts": []}


def leftovers_soon(pids: list[int], temporary: Path, seconds: float = 60) -> dict[str, list[str]]:
    """What is still there when ending things had a moment to come to its end."""
    deadline = time.monotonic() + seconds
    while (found := leftovers(pids, temporary)) != NOTHING and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
