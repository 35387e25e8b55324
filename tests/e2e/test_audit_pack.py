"""`audit_pack` on rows that run code, in real sandboxes: one pack with every defect, and one that is sound."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.attacks.terminal.judging import lay
from tests.e2e.workbench import need_bubblewrap
from tests.packs import Row, write_pack

from securebench.audit.pack.run import audit_pack
from securebench.audit.report.model import Mark, Report

SUM = "def total(values):\n    found = 0\n    for value in values:\n        found += value\n    return found\n"
STRICT = "def test_it():\n    assert open('/app/answer.txt').read() == '42 sheep\\n7 dogs\\n'\n"
EXISTS = "import os\ndef test_it():\n    assert os.path.exists('/app/answer.txt')\n"


def code(name: str, tests: str, **changes: Any) -> Row:
    public = {"prompt": f"Write total(values), {name}.", "language": "python", "entry_point": "total"}
    evaluation = {"tests": {"source": "inline", "code": tests}, "reference_solution": SUM, **changes}
    return {"id": name, "family": "code_completion", "input": public, "eval": evaluation}


def terminal(name: str, checker: str) -> Row:
    return {
        "id": name,
        "family": "terminal_task",
        "input": {"instructions": f"Count the sheep, {name}."},
        "environment": {"workdir": "/app"},
        "eval": {"checker": {"source": "pytest", "path": checker}, "reference_workspace": {"path": "solution"}},
    }


def audited(directory: Path, *rows: Row) -> Report:
    need_bubblewrap()
    lay(directory / "hidden", {"strict.py": STRICT, "exists.py": EXISTS, "solution/answer.txt": "42 sheep\n7 dogs\n"})
    lay(directory / "hidden", {"nothing.py": "def test_it():\n    pass\n"})
    write_pack(directory, rows, files={})
    return anyio.run(partial(audit_pack, directory, mutants=4))


CHECKED = "assert total([]) == 0\nassert total([4, 9]) == 13\nassert total([-7]) == -7\n"


def test_a_sound_pack_has_nothing_against_it(tmp_path: Path) -> None:
    report = audited(tmp_path, code("sound", CHECKED), terminal("counted", "strict.py"))
    assert [(one.rule, one.subject, one.detail) for one in report.findings if one.mark is not Mark.OK] == []
    assert "100% of" in next(one.detail for one in report.findings if one.rule == "P24")


@pytest.fixture(scope="module")
def defects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What was found, by row and rule."""
    constant = code("constant", "assert total([]) == 0\n", mutants=[SUM])
    constant["input"]["prompt"] += "\n>>> total([])\n0\n"
    report = audited(
        tmp_path_factory.mktemp("defects"),
        constant,
        code("broken", CHECKED, reference_solution="def total(values):\n    return 3\n"),
        code("alone", CHECKED, reference_solution=None),
        terminal("exists", "exists.py"),
        terminal("idle", "nothing.py"),
    )
    found: dict[str, dict[str, str]] = {}
    for one in report.findings:
        if one.mark in (Mark.WARNING, Mark.FAILED):
            said = found.setdefault(one.subject, {})
            said[one.rule] = f"{said.get(one.rule, '')}\n{one.detail}"
    assert not report.passed
    return found


@pytest.mark.parametrize(
    ("row", "rule", "said"),
    [
        ("constant", "J10", "always returns"),
        ("constant", "P23", "-        found += value"),
        ("exists", "P24", "0% of 4 mutants are noticed"),
        ("constant", "P02", "knows the examples of the prompt (1)"),
        ("constant", "P22", "mutant 1: must fail, but was passed"),
        ("broken", "P20", "must pass, but was failed"),
        ("alone", "P21", "nothing shows"),
        ("exists", "J10", "copies of the instructions"),
        ("idle", "J01", "base: must fail, but was passed"),
    ],
)
def test_every_defect_is_found(defects: dict[str, dict[str, str]], row: str, rule: str, said: str) -> None:
    assert said in defects[row][rule]
