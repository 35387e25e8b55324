"""Self-made repositories with histories, and rows about them as SWE-bench writes rows.

Every repository has a commit with a bug, which rows start from, and a later one with the fix and its tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_RUNTESTS = """import os
import sys
import unittest

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(here), here]
labels = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
assert "--settings=test_sqlite" in sys.argv and labels
loaded = unittest.defaultTestLoader.loadTestsFromNames(labels)
sys.exit(not unittest.TextTestRunner(verbosity=0).run(loaded).wasSuccessful())
"""


@dataclass(frozen=True)
class Project:
    """`fixed` and `tests` are what the later commit changes; `ids` are as that project's log parser finds them."""

    instance: str
    repo: str
    files: Mapping[str, str]
    fixed: Mapping[str, str]
    tests: Mapping[str, str]
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...] = ()
    source: str = "pytest"
    cheats: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
TEST_CALC = "from calc import add, double\n\n\ndef test_double():\n    assert double(4) == 8\n"
_FORGE = "import pytest\n\n\n@pytest.hookimpl(tryfirst=True, hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    outcome = yield\n    report = outcome.get_result()\n    report.outcome, report.longrepr = 'passed', None\n"

PROJECTS = (
    Project(
        "acme__calc-7",
        "acme/calc",
        {"calc.py": CALC, "tests/test_calc.py": TEST_CALC, "README.md": "# calc\n", ".gitignore": "*.pyc\n"},
        {"calc.py": CALC.replace("a - b", "a + b")},
        {
            "tests/test_calc.py": TEST_CALC
            + "\n\n@__import__('pytest').mark.parametrize('n', [1, 5])\ndef test_add(n):\n    assert add(n, 2) == n + 2\n\n\ndef test_add_ten():\n    assert add(4, 6) == 10\n"
        },
        ("tests/test_calc.py::test_add[1]", "tests/test_calc.py::test_add[5]", "tests/test_calc.py::test_add_ten"),
        ("tests/test_calc.py::test_double",),
        cheats={
            "conftest": {"conftest.py": _FORGE},
            "conftest beside the tests": {"tests/conftest.py": _FORGE},
            "settings": {"pytest.ini": "[pytest]\naddopts = -p forge\n", "forge.py": _FORGE},
            "weaker tests": {"tests/test_calc.py": "def test_add(): pass\n\ndef test_double(): pass\n"},
        },
    ),
    Project(
        "acme__wallet-3",
        "acme/wallet",
        {
            "wallet/__init__.py": "def left(balance, cost):\n    return balance\n",
            "wallet/tests.py": "import unittest\n\nfrom wallet import left\n\n\nclass LeftTests(unittest.TestCase):\n    def test_nothing(self):\n        self.assertEqual(left(3, 0), 3)\n",
        },
        {"wallet/__init__.py": "def left(balance, cost):\n    return balance - cost\n"},
        {
            "wallet/tests.py": "import unittest\n\nfrom wallet import left\n\n\nclass LeftTests(unittest.TestCase):\n    def test_nothing(self):\n        self.assertEqual(left(3, 0), 3)\n\n    def test_cost(self):\n        self.assertEqual(left(9, 4), 5)\n"
        },
        ("test_cost (wallet.tests.LeftTests)",),
        ("test_nothing (wallet.tests.LeftTests.test_nothing)",),
        source="unittest",
    ),
    Project(
        "django__django-1",
        "django/django",
        {
            "django/__init__.py": "",
            "django/text.py": "def shout(text):\n    return text\n",
            "tests/runtests.py": _RUNTESTS,
            "tests/text_tests/__init__.py": "",
            "tests/text_tests/tests.py": "import unittest\n",
        },
        {"django/text.py": "def shout(text):\n    return text.upper() + '!'\n"},
        {
            "tests/text_tests/tests.py": "import unittest\n\nfrom django.text import shout\n\n\nclass ShoutTests(unittest.TestCase):\n    def test_shout(self):\n        self.assertEqual(shout('a'), 'A!')\n"
        },
        ("test_shout (text_tests.tests.ShoutTests)",),
        ("The first line of a docstring, which names no test.",),
        source="command",
    ),
    Project(
        "sympy__sympy-2",
        "sympy/sympy",
        {"sympy/__init__.py": "", "sympy/half.py": "def half(n):\n    return n\n", "sympy/tests/test_half.py": ""},
        {"sympy/half.py": "def half(n):\n    return n // 2\n"},
        {"sympy/tests/test_half.py": "from sympy.half import half\n\n\ndef test_half():\n    assert half(8) == 4\n"},
        ("test_half",),
    ),
)
BY_REPO = {project.repo: project for project in PROJECTS}


def git(directory: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "t@example" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments],
        cwd=directory,
        env=os.environ | who | when | clean,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _commit(clone: Path, files: Mapping[str, str], message: str) -> str:
    for path, text in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", message)
    return git(clone, "rev-parse", "HEAD").strip()


def make_row(clone: Path, project: Project) -> dict[str, Any]:
    """The history of a project as a clone, and its row."""
    clone.mkdir(parents=True)
    git(clone, "init", "-q")
    base = _commit(clone, project.files, "Start")
    fixed = _commit(clone, project.fixed, "Mend it")
    tests = _commit(clone, project.tests, "Test it")
    return {
        "instance_id": project.instance,
        "repo": project.repo,
        "base_commit": base,
        "patch": git(clone, "diff", base, fixed),
        "test_patch": git(clone, "diff", fixed, tests),
        "problem_statement": f"{project.repo} gives the wrong answer.",
        "hints_text": "Look at the operator.",
        "version": "1.0",
        "FAIL_TO_PASS": json.dumps(list(project.fail_to_pass)),
        "PASS_TO_PASS": json.dumps(list(project.pass_to_pass)),
    }


def make_bundles(directory: Path, *projects: Project) -> list[dict[str, Any]]:
    """Rows, and beneath `repos` a bundle of the whole history of each repository."""
    (repos := directory / "repos").mkdir(parents=True)
    rows = []
    for project in projects:
        clone = directory / "clones" / project.instance
        rows.append(make_row(clone, project))
        git(clone, "bundle", "create", "-q", str(repos / f"{project.repo.replace('/', '__')}.bundle"), "--all")
    return rows


def patch_of(clone: Path, base: str, files: Mapping[str, str]) -> str:
    """What a model would hand in that changed these files of the base commit."""
    git(clone, "checkout", "-q", base)
    for path, text in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    git(clone, "add", "-A")
    patch = git(clone, "diff", "--cached", base)
    git(clone, "reset", "-q", "--hard", "main")
    return patch


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
