"""Small real runs for tests of what shows runs: made by the engine, in sandboxes, against a scripted model.

asked = chat_run(tmp_path)          # questions and code, two attempts each, with transcripts, tokens and costs
worked = repository_run(tmp_path)   # a patch and a workspace
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from tests.attacks.repositories.judging import make_pack as make_repository_pack
from tests.attacks.repositories.repositories import REPOSITORIES
from tests.e2e.workbench import need_bubblewrap

from securebench.tester_config import load_tester_config
from securebench.tester_run import run_tester_config
from securebench.testing.model_server import KEY, Asked, Turn, model_server

WALLET = next(one for one in REPOSITORIES if one.name == "wallet")

QUESTIONS: Mapping[str, tuple[str, int]] = {"six": ("6 * 7?", 42), "eight": ("8 * 7?", 56), "nine": ("9 * 7?", 63)}
CODE = "def double(x):\n    return x * 2\n"


def code_row(name: str) -> dict[str, Any]:
    cases = [{"args": [2], "expected": 4}, {"args": ["a"], "expected": "aa"}, {"args": [[1]], "expected": [1, 1]}]
    return {
        "id": name,
        "family": "code_completion",
        "input": {
            "prompt": f"Write double(x), which returns twice x. ({name})",
            "language": "python",
            "entry_point": "double",
        },
        "eval": {"tests": {"source": "cases", "cases": cases}},
        "metadata": {"tags": ["hard", "code"]},
    }


def question_row(name: str) -> dict[str, Any]:
    question, answer = QUESTIONS[name]
    return {
        "id": name,
        "family": "short_answer",
        "input": {"question": question},
        "eval": {"accepted_answers": [answer]},
        "metadata": {"tags": ["easy", "arithmetic"]},
    }


def chat_run(directory: Path, name: str = "asked", *, attempts: int = 2, reply: str = "Answer: 42") -> Path:
    """Three questions of which one is answered right, and two functions of which one comes right every second time."""
    need_bubblewrap()
    turns = count()

    def said(asked: Asked) -> Turn:
        number = next(turns)
        if "twice x" not in asked.text:
            return Turn(reply, usage=(50 + number, 10, 4))
        right = "(code-1)" in asked.text or number % 2
        return Turn(f"```python\n{CODE if right else CODE.replace('2', '3')}```", usage=(80, 20, 30 + number))

    rows = [*map(question_row, QUESTIONS), code_row("code-1"), code_row("code-2")]
    with model_server(said) as server:
        harness = {
            "type": "chat",
            "env": ["CHAT_KEY"],
            "config": {
                "base_url": server.base_url,
                "model": "scripted-1",
                "api_key_env": "CHAT_KEY",
                "prices": {"input": 1.0, "output": 2.0, "cached_input": 0.5},
            },
        }
        return _run(directory / f"{name}-pack", name, rows, harness, attempts)


def repository_run(directory: Path, name: str = "worked") -> Path:
    """A patch to a repository that passes, as a patch that fails beside it."""
    need_bubblewrap()
    pack = directory / f"{name}-pack"
    pack.mkdir(parents=True)
    make_repository_pack(pack, WALLET)
    fix = f"cat > wallet.py <<'END'\n{WALLET.fix['wallet.py']}END\necho mended"
    return _tested(pack, name, {"type": "command", "config": {"command": fix, "timeout_seconds": 60}}, 1)


def _run(pack: Path, name: str, rows: list[dict[str, Any]], harness: dict[str, Any], attempts: int) -> Path:
    pack.mkdir(parents=True)
    (pack / "manifest.yaml").write_text("id: gallery\nversion: 1\n")
    (pack / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return _tested(pack, name, harness, attempts)


def _tested(pack: Path, name: str, harness: dict[str, Any], attempts: int) -> Path:
    tester = {
        "schema_version": "0.3",
        "run": {"id": name, "output_dir": str(pack.parent / name), "attempts": attempts},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": harness,
    }
    (pack / "tester.yaml").write_text(json.dumps(tester))
    run_tester_config(load_tester_config(pack / "tester.yaml", env={"CHAT_KEY": KEY}), workers=1)
    return pack.parent / name
