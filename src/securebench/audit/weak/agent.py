"""Producers that leave something in an agent's reach which is not for it. Each is told the agent's workspace before it
starts, and the pack."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securebench.audit.plays.agent import Spoil
from securebench.audit.plays.agent_lint import Files
from securebench.audit.plays.agent_pack import REPOSITORY, Markers, bundle_with_a_future, read_rows
from securebench.harnesses.base import Production
from securebench.tasks import SecureBenchTask


def copies_the_pack(workspace: Path, pack: Path, _marks: Markers) -> Mapping[str, str]:
    """The task is handed over with the directory it came in."""
    shutil.copytree(pack, workspace / "pack")
    return {}


def mounts_the_pack_where_it_lies(workspace: Path, pack: Path, _marks: Markers) -> Mapping[str, str]:
    """As above, at the place a harness expects from the host: the agent's own root follows the host's paths."""
    target = workspace / str(pack).lstrip("/")
    target.parent.mkdir(parents=True)
    shutil.copytree(pack, target)
    return {}


def answers_in_the_environment(_workspace: Path, _pack: Path, marks: Markers) -> Mapping[str, str]:
    """The grader's settings are exported for everybody."""
    return {"EXPECTED_ANSWER": marks.private}


def keeps_the_history(workspace: Path, _pack: Path, marks: Markers) -> Mapping[str, str]:
    """The repository is a clone: what came later is in its object store."""
    bundle, _ = bundle_with_a_future(marks)
    packs = workspace / ".git" / "objects" / "pack"
    packs.mkdir(parents=True, exist_ok=True)
    (packs / "pack-0.pack").write_bytes(bundle.partition(b"\n\n")[2])
    return {}


def copies_the_repository_whole(workspace: Path, pack: Path, _marks: Markers) -> Mapping[str, str]:
    """Every file of the source directory, whatever made it."""
    shutil.copytree(pack / "assets" / REPOSITORY, workspace, dirs_exist_ok=True, symlinks=True)
    return {}


@dataclass(frozen=True, slots=True)
class FollowsEveryPath:
    """Whatever the public part of a row names is fetched, wherever it leads, from a pack that nobody looked at after
    `spoil` was done to it."""

    spoil: Spoil

    def __call__(self, workspace: Path, pack: Path, marks: Markers) -> Mapping[str, str]:
        self.spoil(pack, marks)
        public = re.search(r"public: (\w+)", (pack / "manifest.yaml").read_text())
        asset_root = pack / (public[1] if public else "assets")
        for number, row in enumerate(read_rows(pack)):
            told = json.dumps([row["input"], row.get("metadata")]).replace("\\", "")
            named = [pack / "hidden" / path for path in re.findall(r'"path": "([^"]+)"', told)]
            for place in [*named, *(asset_root / asset["path"] for asset in row["assets"])]:
                copy = workspace / f"fetched-{number}" / place.name
                copy.parent.mkdir(exist_ok=True)
                (shutil.copytree if place.is_dir() else shutil.copy)(place, copy)
        return {}


def keeps_times(workspace: Path, pack: Path, _marks: Markers) -> Mapping[str, str]:
    """The task file is as old as the hidden file is long: anything that depends on what is hidden will do."""
    when = 1_000_000_000 + (pack / "hidden" / "secret.txt").stat().st_size
    os.utime(workspace / "task.json", (when, when))
    return {}


def name_of_the_program(production: Production) -> str:
    """A harness is known by its name, whatever it was told."""
    return str(production.metadata["harness"])


def everything_known(task: SecureBenchTask) -> Mapping[str, Any]:
    """A prompt is made from all that is known of the task."""
    payload = task.hidden_payload() | {"evaluation": task.evaluation_payload()}
    return payload | {"input": {name: f"{value} {payload}" for name, value in payload["input"].items()}}


def as_published(choices: tuple[str, ...]) -> tuple[str, ...]:
    """A twin that is none: the options stand where they stood."""
    return choices


def looks_at_the_patched_file(public: Files, hidden: str) -> list[str]:
    """A repair is looked for only where it belongs."""
    path = hidden.partition("+++ b/")[2].partition("\n")[0]
    return [name for name, data in public if name == path and hidden.rpartition("\n+")[2].encode() in data]


def looks_at_sources(public: Files, hidden: str) -> list[str]:
    """Files that tools made are nobody's business."""
    return [path for path, data in public if path.endswith((".py", ".txt")) and hidden.encode() in data]


def looks_for_an_equal_text(public: Files, hidden: str) -> list[str]:
    """A leak is a public value that is the hidden one."""
    return [path for path, data in public if data.decode("utf-8", "replace") == hidden]


def numbered_names(number: int) -> Mapping[str, str]:
    """Everything is named by a number that counts up."""
    return {"GROUP": f"/runner-4711-{17 + 3 * number}"}
