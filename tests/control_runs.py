"""Small real runs of harnesses that need no sandbox, for tests of what compares runs.

forty_two = constant_run(tmp_path, "a", "42")    # passes the tasks whose answer is 42
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from securebench.tester_config import load_tester_config
from securebench.tester_run import run_tester_config

ANSWERS: Mapping[str, Sequence[int]] = {
    **{f"both-{n}": (42, 43) for n in range(4)},
    **{f"one-{n}": (42,) for n in range(5)},
    **{f"other-{n}": (43,) for n in range(2)},
    **{f"none-{n}": (7,) for n in range(3)},
}
"""Tasks, and the answers that pass them."""


def write_control_pack(
    directory: Path, answers: Mapping[str, Sequence[int]] = ANSWERS, *, version: int = 1, extra: str = ""
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "manifest.yaml").write_text(f"id: control\nversion: {version}\n")
    rows = [
        {
            "id": name,
            "family": "short_answer",
            "input": {"question": f"Which number is {name}?{extra}", "answer_format": "number"},
            "eval": {"accepted_answers": list(accepted)},
            "metadata": {"tags": ["easy" if len(accepted) > 1 else "hard"]},
        }
        for name, accepted in answers.items()
    ]
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def constant_run(
    directory: Path,
    name: str,
    response: str,
    *,
    pack: Path | None = None,
    attempts: int = 1,
    limit: int | None = None,
    records: Mapping[str, Any] | None = None,
    **more: Any,
) -> Path:
    """A run that answers everything alike; its directory."""
    pack = pack or write_control_pack(directory / "pack")
    out = directory / name
    tester = {
        "schema_version": "0.3",
        "run": {"id": name, "output_dir": str(out), "attempts": attempts},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "constant", "config": {"response": response}},
        **({"records": dict(records)} if records is not None else {}),
        **more,
    }
    config = pack / f"{name}.yaml"
    config.write_text(json.dumps(tester))
    run_tester_config(load_tester_config(config, env={}), limit=limit)
    return out


def tampered(run: Path, before: str, after: str) -> Path:
    """Change the last record of a finished run that says `before`, as somebody might who wants a better score. The order
    of records says nothing."""
    path = run / "candidates.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    number = max(number for number, line in enumerate(lines) if before in line)
    lines[number] = lines[number].replace(before, after)
    path.write_text("".join(lines))
    return run
