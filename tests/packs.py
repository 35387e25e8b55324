"""Packs for tests: valid rows of every family, ways to break them, and a writer that puts a pack on disk.

pack = load(write_pack(tmp_path, [row("short_answer"), changed(row(), "eval.answer", 7)]))
(task,) = tasks(write_pack(tmp_path, [row()]))
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from securebench.benchmark_compiler import CompiledTasks, compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack, load_benchmark_pack

Row = dict[str, Any]

MANIFEST = "id: test-pack\nversion: 1\n"

FILES: Mapping[str, str | bytes] = {
    "assets/data.txt": "public data\n",
    "assets/tree/a.txt": "a\n",
    "assets/tree/deep/b.txt": "b\n",
    "hidden/check.py": "# the checker\n",
    "hidden/secret.txt": "the secret file\n",
}
"""What every pack of `write_pack` holds beside its manifest and rows."""

VALID_ROWS: Mapping[str, Row] = {
    "multiple_choice": {
        "id": "choice-1",
        "family": "multiple_choice",
        "input": {"question": "Which is a colour?", "choices": ["stone", "green", "seven"]},
        "eval": {"answer": "B"},
    },
    "short_answer": {
        "id": "short-1",
        "family": "short_answer",
        "input": {"question": "What is 6 * 7?", "answer_format": "number"},
        "eval": {"accepted_answers": [42, "42.0"], "tolerance": 0.5},
    },
    "free_response": {
        "id": "free-1",
        "family": "free_response",
        "input": {"prompt": "Name the capital of Norway.", "context": "Geography."},
        "eval": {
            "rubric": {"type": "contains_any", "accepted_answers": ["Oslo"], "rejected_answers": ["Bergen"]},
            "reference_answer": "It is Oslo.",
        },
    },
    "code_completion": {
        "id": "code-1",
        "family": "code_completion",
        "input": {"prompt": "Write add(a, b).", "language": "python", "entry_point": "add"},
        "eval": {
            "tests": {
                "source": "cases",
                "cases": [{"args": [1, 2], "expected": 3}, {"args": [0], "raises": "TypeError"}],
            },
            "reference_solution": "def add(a, b): return a + b",
            "canonical_solution": {"path": "secret.txt"},
        },
    },
    "repo_patch": {
        "id": "patch-1",
        "family": "repo_patch",
        "input": {"repo": "tree", "base_commit": "abc123", "instructions": "Fix it.", "hints": "Look at a.txt."},
        "eval": {
            "tests": {"source": "pytest", "fail_to_pass": ["t.py::test_a"], "test_patch": {"path": "secret.txt"}},
            "candidate_policy": {"allow_paths": ["pkg/**"]},
            "gold_patch": {"source": "inline", "patch": "--- a\n+++ b\n"},
        },
    },
    "terminal_task": {
        "id": "terminal-1",
        "family": "terminal_task",
        "input": {"instructions": "Sort data.txt.", "context": "A shell."},
        "assets": [{"path": "data.txt"}, {"path": "tree", "mount": "work/tree", "read_only": False}],
        "eval": {
            "checker": {"source": "script", "path": "check.py", "timeout_seconds": 5},
            "needed_commands": ["sort"],
            "test_files": [{"path": "secret.txt"}],
            "expected_state": {"sorted": True},
        },
    },
}
"""One valid row of every family, with its optional fields."""


def row(family: str = "multiple_choice", /, **changes: Any) -> Row:
    """A copy of the family's valid row with top-level keys replaced."""
    return copy.deepcopy(VALID_ROWS[family]) | changes


REMOVED = object()


def changed(source: Row, place: str, value: Any) -> Row:
    """A copy with `value` at a dotted place (`eval.tests.cases.0.args`); `REMOVED` takes the key out."""
    result = copy.deepcopy(source)
    *parents, last = (int(part) if part.isdigit() else part for part in place.split("."))
    target: Any = result
    for part in parents:
        target = target[part] if isinstance(part, int) else target.setdefault(part, {})
    if value is REMOVED:
        del target[last]
    else:
        target[last] = value
    return result


def marked_rows(private: str) -> list[Row]:
    """A valid row of every family with the marker in every private field that can hold text, and undeclared ones."""
    changes: dict[str, dict[str, Any]] = {
        "multiple_choice": {"answer": 0},
        "short_answer": {"accepted_answers": [private, f"{private} too"]},
        "free_response": {
            "rubric": {"type": "judge", "criteria": private, "controls": [{"response": f"{private} wrong"}]},
            "reference_answer": f"It is {private}.",
        },
        "code_completion": {
            "tests": {"source": "inline", "code": f"assert f() == {private!r}"},
            "reference_solution": f"def f(): return {private!r}",
            "canonical_solution": f"f = lambda: {private!r}",
        },
        "repo_patch": {
            "tests": {"source": "command", "command": ["test", private], "setup_patch": private, "test_patch": private},
            "candidate_policy": {"allow_paths": [private], "patch_preserved_paths": [private]},
            "gold_patch": private,
        },
        "terminal_task": {
            "checker": {"source": "script", "path": "check.py", "mount": f"{private}.py"},
            "needed_commands": [private],
            "run_tests": {"path": "secret.txt", "mount": f"{private}.txt"},
            "test_files": [],
            "expected_state": {"state": [private]},
        },
    }
    extra = {
        "author_notes": {"deep": [private, {"deeper": private}]},
        "extra_file": {"path": "check.py", "mount": private},
    }
    rows = [row(family, eval=private_fields | extra) for family, private_fields in changes.items()]
    del rows[1]["input"]["answer_format"]
    return rows


def write_pack(
    directory: Path,
    rows: Iterable[Row | str | bytes] | bytes,
    manifest: str | bytes | Row = MANIFEST,
    files: Mapping[str, str | bytes] = FILES,
) -> Path:
    """Write `manifest.yaml`, `tasks.jsonl` and files beneath `directory`; returns it.

    A row is an object or the text of its line; `rows` as bytes is the whole file as it stands."""
    directory.mkdir(parents=True, exist_ok=True)
    if isinstance(manifest, dict):
        manifest = json.dumps(manifest)
    _write(directory / "manifest.yaml", manifest)
    _write(directory / "tasks.jsonl", rows if isinstance(rows, bytes) else b"".join(map(_line, rows)))
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        _write(directory / name, content)
    return directory


def load(directory: Path) -> BenchmarkPack:
    """The pack that `write_pack` wrote."""
    return load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl")


def tasks(directory: Path) -> CompiledTasks:
    """The compiled tasks of the pack that `write_pack` wrote."""
    return compile_benchmark_pack(load(directory))


def _line(source: Row | str | bytes) -> bytes:
    if isinstance(source, bytes):
        return source + b"\n"
    return (source if isinstance(source, str) else json.dumps(source)).encode() + b"\n"


def _write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
