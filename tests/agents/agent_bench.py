"""Packs, tester files and a scripted model for the real agents' tools."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import Any

import pytest
from tests.e2e.workbench import Finished, Workbench, securebench

from securebench.candidates.store import CandidateStore
from securebench.testing.model_server import KEY, ModelServer

CODE = {
    "id": "double",
    "family": "code_completion",
    "input": {"prompt": "Write double(x), which returns twice x.", "language": "python", "entry_point": "double"},
    "eval": {"tests": {"source": "cases", "cases": [{"args": [2], "expected": 4}, {"args": ["a"], "expected": "aa"}]}},
}
CHECKER = """\
import os, pathlib
def test_greeting():
    place = pathlib.Path(os.environ["SECUREBENCH_WORKSPACE"]) / "greeting.txt"
    assert place.read_text() == "hello\\n"
"""
TERMINAL = {
    "id": "greet",
    "family": "terminal_task",
    "input": {"instructions": "Write the word hello and a newline into greeting.txt."},
    "eval": {"checker": {"source": "pytest", "path": "check.py"}},
}

HARNESSES: dict[str, dict[str, Any]] = {
    "codex": {"type": "codex", "config": {"model": "scripted-1", "api_key_env": "THE_KEY"}},
    "claude_code": {
        "type": "claude_code",
        "config": {"model": "sonnet", "models": ["haiku"], "api_key_env": "THE_KEY"},
    },
}


def need_tool(name: str) -> None:
    """The real tool, from the cache that scripts/ci-agents fills."""
    listed = securebench("tools", "list", "--json")
    there = listed.code == 0 and any(entry["tool"] == name for entry in listed.json["tools"])
    if not there and shutil.which("npm") is None:
        message = f"{name} is not in the cache of tools (scripts/ci-agents)"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(message)
        pytest.skip(message)


@dataclass(frozen=True)
class AgentBench(Workbench):
    """A pack with one code task and one terminal task, and an agent on it."""

    def start(self, harness: dict[str, Any], model: ModelServer, *args: str, **sections: Any) -> Finished:
        """Run an agent whose model is at that server."""
        address = model.url if harness["type"] == "claude_code" else model.base_url
        return self.begin({**harness, "config": {**harness["config"], "base_url": address}}, *args, **sections)

    def begin(self, harness: dict[str, Any], *args: str, **sections: Any) -> Finished:
        """Write everything down and run it."""
        (self.directory / "hidden").mkdir(exist_ok=True)
        (self.directory / "hidden/check.py").write_text(CHECKER)
        (self.directory / "manifest.yaml").write_text("id: agents\nversion: 1\n")
        tester = {
            "schema_version": "0.3",
            "run": {"id": "agents", "output_dir": "out"},
            "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
            "harness": harness,
            **sections,
        }
        self.config.write_text(json.dumps(tester))
        return securebench("run", "--config", self.config, "--json", *args, env={"THE_KEY": KEY})

    def rows(self, *rows: dict[str, Any], image: str | None = None) -> AgentBench:
        environment = {} if image is None else {"environment": {"image": image}}
        (self.directory / "tasks.jsonl").write_text("".join(json.dumps(row | environment) + "\n" for row in rows))
        return self

    def evidence(self, record: dict[str, Any], name: str) -> bytes:
        return CandidateStore(self.output / "candidates").read(record["evidence"][name]["digest"], 1 << 30)
