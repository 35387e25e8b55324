"""In a source checkout: CI runs the same checks as a local run, this audit among them."""

from __future__ import annotations

import re
from pathlib import Path

from securebench.audit.result import Check, Group

SOURCE = Path(__file__).resolve().parents[3]
REQUIRED = ("test", "audit")


def check_checkout(root: Path = SOURCE) -> list[Check]:
    """Rows about `.ci/run` and `Makefile`; none where this is an installed package, which has no CI to speak of."""
    if not (root / "pyproject.toml").is_file() or not (root / "src" / "securebench").is_dir():
        return []
    try:
        ci, makefile = (root / ".ci" / "run").read_text(), (root / "Makefile").read_text()
    except OSError as error:
        return [Check("checkout: CI and local checks", Group.CHECKOUT, False, f"cannot be read: {error}")]
    in_ci = {target for line in _commands(ci, "make") for target in line}
    local = set(_prerequisites(makefile, "check"))
    audit = _recipe(makefile, "audit")
    rows = [
        _row("CI makes what `make check` makes", in_ci == local, f"CI: {_names(in_ci)}; make check: {_names(local)}"),
        _row("both run the tests and the audit", set(REQUIRED) <= in_ci & local, f"common: {_names(in_ci & local)}"),
        _row("`make audit` is this audit", "securebench audit" in audit, audit.strip() or "no recipe"),
        _row("a failing step ends CI", "set -e" in ci and "|| true" not in ci, "set -e, nothing swallowed"),
        _row("CI skips no component it provides", "SECUREBENCH_CI=1" in ci, "SECUREBENCH_CI"),
    ]
    script = root / "scripts" / "security_audit.py"
    same = script.is_file() and "securebench.cli.audit" in script.read_text()
    return [*rows, _row("scripts/security_audit.py is this audit", same, "runs securebench.cli.audit")]


def _row(name: str, passed: bool, detail: str) -> Check:
    return Check(f"checkout: {name}", Group.CHECKOUT, passed, detail)


def _commands(script: str, program: str) -> list[list[str]]:
    """The arguments of every plain call of `program` in a shell script."""
    lines = (line.strip() for line in script.splitlines())
    return [line.split()[1:] for line in lines if re.match(rf"{program}\b", line)]


def _prerequisites(makefile: str, target: str) -> list[str]:
    found = re.search(rf"(?m)^{target}:([^\n]*)$", makefile)
    return found[1].split() if found else []


def _recipe(makefile: str, target: str) -> str:
    found = re.search(rf"(?m)^{target}:[^\n]*\n((?:\t[^\n]*\n?)+)", makefile)
    return found[1] if found else ""


def _names(targets: set[str]) -> str:
    return ", ".join(sorted(targets)) or "nothing"
