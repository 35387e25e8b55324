"""Two small repositories with a bug, hidden tests, an honest fix and a wrong one: one runs under pytest, one under
unittest. And what every play needs of a repository: a patch of it, and its pack."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from securebench.audit.plays.terminal import load_task
from securebench.tasks import SecureBenchTask


def code(text: str) -> str:
    return dedent(text).lstrip("\n")


@dataclass(frozen=True, eq=False)
class Repository:
    """What the agent gets (`files`), what it must not see (`tests`), and changes of known worth."""

    name: str
    runner: str
    package: str  # the file whose function is broken
    files: Mapping[str, str]
    tests: Mapping[str, str]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    fix: Mapping[str, str]
    wrong: Mapping[str, str]
    other_fixes: tuple[Mapping[str, str], ...] = ()
    suite: Mapping[str, Any] = field(
        default_factory=dict
    )  # of `eval.tests`, instead of what stands there; None: without


def as_patch(before: Mapping[str, str], changes: Mapping[str, str]) -> str:
    """A git-style patch of text files."""
    parts = []
    for path, new in sorted(changes.items()):
        old = before.get(path)
        if old == new:
            continue
        parts.append(f"diff --git a/{path} b/{path}\n" + ("" if old is not None else "new file mode 100644\n"))
        lines = difflib.unified_diff(
            (old or "").splitlines(True),
            new.splitlines(True),
            f"a/{path}" if old is not None else "/dev/null",
            f"b/{path}",
        )
        parts.extend(lines)
    return "".join(parts)


def make_pack(
    directory: Path, repository: Repository, environment: Mapping[str, Any] | None = None, **tests: Any
) -> SecureBenchTask:
    """Write the pack of one repository and compile its task. `tests` are further fields of `eval.tests`."""
    write(directory / "assets/repo", repository.files)
    write(directory / "hidden/suite", repository.tests)
    suite = {
        "source": repository.runner,
        "fail_to_pass": repository.fail_to_pass,
        "pass_to_pass": repository.pass_to_pass,
        "files": [{"path": f"suite/{path}", "mount": path} for path in repository.tests],
        "timeout_seconds": 20,
        **repository.suite,
        **tests,
    }
    row = {
        "id": repository.name,
        "family": "repo_patch",
        "input": {"repo": "repo", "base_commit": "main", "instructions": "Fix the bug."},
        "assets": [{"path": "repo"}],
        "eval": {
            "tests": {name: value for name, value in suite.items() if value is not None},
            "gold_patch": as_patch(repository.files, repository.fix),
        },
        "environment": dict(environment or {}),
    }
    (directory / "manifest.yaml").write_text("id: repositories\nversion: 1\n")
    (directory / "tasks.jsonl").write_text(json.dumps(row) + "\n")
    return load_task(directory)


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Text files beneath a directory of ours."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        (place := directory / path).parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


_MERGE = code("""
    def merge(intervals):
        merged = []
        for start, end in intervals:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        return merged


    def length(intervals):
        return sum(end - start for start, end in intervals)
""")
_MERGE_FIX = _MERGE.replace("in intervals:\n        if", "in sorted(intervals):\n        if").replace(
    "start < merged[-1][1]:\n            merged[-1] = (merged[-1][0], end)",
    "start <= merged[-1][1]:\n            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))",
)

_EVALUATION = code("""
    import re


    def tokens(text):
        return re.findall(r"[0-9]+|[-+*()]", text)


    def evaluate(text):
        total, sign = 0, "+"
        for token in tokens(text):
            if token.isdigit():
                number = int(token)
                total = total + number if sign == "+" else total - number if sign == "-" else total * number
            else:
                sign = token
        return total
""")
_EVALUATION_FIX = _EVALUATION[: _EVALUATION.index("def evaluate")] + code("""
    def evaluate(text):
        stack, sign = [], "+"
        for token in tokens(text):
            if not token.isdigit():
                sign = token
            elif sign == "*":
                stack.append(stack.pop() * int(token))
            else:
                stack.append(int(token) if sign == "+" else -int(token))
        return sum(stack)
""")

INTERVALS = Repository(
    name="intervals",
    runner="pytest",
    package="intervals/core.py",
    files={
        "intervals/__init__.py": "from intervals.core import length, merge\n",
        "intervals/core.py": _MERGE,
        "setup.cfg": "[metadata]\nname = intervals\n",
    },
    tests={
        "tests/test_merge.py": code("""
            import intervals


            def test_disjoint():
                assert intervals.merge([(1, 2), (3, 4)]) == [(1, 2), (3, 4)]


            def test_touching():
                assert intervals.merge([(1, 2), (2, 5)]) == [(1, 5)]


            def test_inside():
                assert intervals.merge([(1, 9), (2, 3)]) == [(1, 9)]


            def test_length():
                assert intervals.length(intervals.merge([(5, 6), (1, 5)])) == 5
        """)
    },
    fail_to_pass=("tests/test_merge.py::test_touching", "tests/test_merge.py::test_inside"),
    pass_to_pass=("tests/test_merge.py::test_disjoint",),
    fix={"intervals/core.py": _MERGE_FIX},
    wrong={"intervals/core.py": _MERGE.replace("start <", "start <=")},
)

CALC = Repository(
    name="calc",
    runner="unittest",
    package="calc/evaluation.py",
    files={"calc/__init__.py": "", "calc/evaluation.py": _EVALUATION, "tests/__init__.py": ""},
    tests={
        "tests/test_calc.py": code("""
            import unittest
            from calc.evaluation import evaluate


            class TestCalc(unittest.TestCase):
                def test_sum(self):
                    self.assertEqual(evaluate("1+2-4"), -1)

                def test_precedence(self):
                    self.assertEqual(evaluate("1+2*3"), 7)
                    self.assertEqual(evaluate("2*3+4*5"), 26)

                def test_many(self):
                    for text, value in [("2*2*2", 8), ("9-2*4", 1)]:
                        with self.subTest(text):
                            self.assertEqual(evaluate(text), value)
        """)
    },
    fail_to_pass=("tests.test_calc.TestCalc.test_precedence", "tests.test_calc.TestCalc.test_many"),
    pass_to_pass=("tests.test_calc.TestCalc.test_sum",),
    fix={"calc/evaluation.py": _EVALUATION_FIX},
    wrong={"calc/evaluation.py": _EVALUATION.replace("total * number", "total + number * number")},
)
