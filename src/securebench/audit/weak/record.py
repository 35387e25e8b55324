"""Readers of records that believe what they read: no chain, no seal, no digests, no plan."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio import to_thread

from securebench.audit.plays.record import BENCH, Change, Made, made_on, one_of_two
from securebench.audit.plays.run_engine import OUTPUT, Bench, tester_file
from securebench.audit.suite.attack import End, Ground, Seen

_FIELDS = ("task_id", "attempt", "verification_status", "passed", "score", "candidate_text", "cost", "usage")


@dataclass(frozen=True, slots=True)
class Believed:
    """Takes every line that can be read for a record, every summary for one and every stored file for what it was: who
    changed the run has reached their goal where it reads another one."""

    change: Change
    begun: bool = False
    rolled_back: bool = False

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        which = made.begun if self.begun else made.sealed
        run = made.copy(ground, made.begun if self.rolled_back else which)
        return await to_thread.run_sync(self._read, made, which, run)

    def _read(self, made: Made, which: Path, run: Path) -> Seen:
        before = believed(which / OUTPUT)
        self.change(run, made.stranger)
        after = believed(run)
        changed = [name for name in before if before[name] != after.get(name)]
        return Seen(End.REACHED if changed else End.MISSED, f"read otherwise, without a word: {changed}")


def believed(run: Path) -> dict[str, Any]:
    """What a credulous reader takes from a run directory."""
    return {
        "records": [[record.get(name) for name in _FIELDS] for record in _rows(run / "candidates.jsonl")],
        "summary": _json(run / "summary.json"),
        "plan": _json(run / "plan.json"),
        "signed": [(run / name).exists() for name in ("seal.json", "checkpoints.jsonl")],
        "stored": [path.read_bytes() for path in sorted((run / "candidates").rglob("*")) if path.is_file()],
        "seal": (run / "seal.json").read_bytes() if (run / "seal.json").is_file() else None,
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with suppress(ValueError):
            yield json.loads(line)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class SameName:
    """Continues a run under whatever terms there are now, as long as it is called the same."""

    bench: Bench

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        named, wanted = _json(made.begun / OUTPUT / "plan.json")["run_id"], tester_file(self.bench)["run"]["id"]
        others = self.bench != BENCH
        return Seen(End.REACHED if named == wanted and others else End.MISSED, f"{wanted} goes on as {named}")


@dataclass(frozen=True, slots=True)
class LastRowWins:
    """Keeps one row for each task: the last."""

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        last = {record["task_id"]: record["score"] for record in one_of_two(made.sealed / OUTPUT)}
        score = sum(last.values()) / len(last)
        return Seen(End.REACHED if score == 1.0 else End.MISSED, f"the score is {score}")


@dataclass(frozen=True, slots=True)
class JoinedLines:
    """Writes a row by putting its parts between quotation marks, and reads every line that looks like one."""

    text: str

    async def on(self, ground: Ground) -> Seen:
        path = ground.directory / "rows"
        path.write_text(f'{{"task_id": "hostile", "passed": false, "text": "{self.text}"}}\n')
        rows = list(_rows(path))
        return Seen(End.REACHED if any(row.get("passed") for row in rows) else End.MISSED, f"{len(rows)} rows")


@dataclass(frozen=True, slots=True)
class AddsUp:
    """Adds up whatever number stands in a record, as a floating-point number."""

    change: Change

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        run = made.copy(ground, made.sealed)
        self.change(run, made.stranger)
        try:
            float(sum(_numbers([*_rows(run / "candidates.jsonl"), _json(run / "summary.json")]), 0.5))
        except OverflowError as error:
            return Seen(End.REACHED, f"it ended with {error}")
        return Seen(End.MISSED, "it came to a sum")


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value


@dataclass(frozen=True, slots=True)
class WritesWherever:
    """Opens the files of a run directory by name and writes to them, wherever that leads."""

    name: str
    change: Change

    async def on(self, ground: Ground) -> Seen:
        made = await made_on(ground)
        run = made.copy(ground, made.begun)
        self.change(run, made.stranger)
        outside = ground.directory / "outside"
        before = outside.read_bytes() if outside.exists() else None
        if (run / self.name).is_fifo():
            # Opening it to read would wait for ever; that it would is seen from the other end.
            try:
                os.close(os.open(run / self.name, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                return Seen(End.REACHED, "whoever opens it waits")
        with (run / self.name).open("a") as file:
            file.write("a line of ours\n")
        after = outside.read_bytes() if outside.exists() else None
        return Seen(End.REACHED if before != after else End.MISSED, "a file outside was written")
