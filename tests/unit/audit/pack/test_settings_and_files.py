"""Rules about settings, and about the files that agents get; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.packs import REMOVED, Row, changed, row
from tests.unit.audit.pack.auditing import audit_rows, complaints, found
from tests.unit.audit.pack.test_leaks import BROKEN, PATCH, REPAIRED, SOLUTION

from securebench.audit.report.model import Mark, Place

HIDDEN_TEST = """\
from pkg.clamp import clamp


def test_clamp_keeps_the_lower_bound_for_small_values():
    assert clamp(-17, 4, 96) == 4
    assert clamp(2048, 4, 96) == 96
"""


def code(**evaluation: Any) -> Row:
    tests = {"source": "inline", "code": "assert median([3, 1, 2]) == 2\nassert median([40, 10, 30, 20]) == 25.0\n"}
    public = {"prompt": "Write median(values).", "language": "python", "entry_point": "median"}
    return row("code_completion", input=public, eval={"tests": tests, "reference_solution": SOLUTION, **evaluation})


def repo(**changes: Any) -> Row:
    tests = {
        "source": "pytest",
        "fail_to_pass": ["tests/test_clamp.py::test_clamp_keeps_the_lower_bound_for_small_values"],
        "files": [{"path": "test_clamp.py", "mount": "tests/test_clamp.py"}],
    }
    public = {"repo": "repo", "base_commit": "main", "instructions": "Small values come out too large; repair it."}
    made = row("repo_patch", input=public, eval={"tests": tests, "gold_patch": PATCH}, assets=[{"path": "repo"}])
    return made | changes


REPO_FILES: dict[str, str | bytes] = {"assets/repo/pkg/clamp.py": BROKEN, "hidden/test_clamp.py": HIDDEN_TEST}


def terminal(**changes: Any) -> Row:
    made = changed(row("terminal_task"), "eval.test_files", [])
    return changed(made, "eval.reference_workspace", {"path": "solution"}) | changes


TERMINAL_FILES = {"hidden/solution/sorted.txt": "alpha 17\nkestrel 4411\nmeridian 90210\nosprey 31337\n"}


def test_sound_rows_have_nothing_against_them(tmp_path: Path) -> None:
    report = audit_rows(tmp_path, [code(), repo(), terminal()], {**REPO_FILES, **TERMINAL_FILES})
    assert complaints(report) == []
    assert {one.rule for one in report.findings if one.mark is Mark.SKIPPED} >= {"P20", "J10", "P23"}


@pytest.mark.parametrize(
    ("place", "value", "rule"),
    [
        ("input.prompt", f"Write median(values). Not like this:\n{SOLUTION}", "A08"),
        ("metadata", {"solution": SOLUTION}, "A01"),
        ("input.starter_code", SOLUTION, "A08"),
    ],
)
def test_a_solution_that_is_told(tmp_path: Path, place: str, value: Any, rule: str) -> None:
    (one,) = found(audit_rows(tmp_path, [changed(code(), place, value)]), rule)
    assert (one.mark, one.subject) == (Mark.FAILED, "code-1")


@pytest.mark.parametrize(
    ("files", "rule", "mark"),
    [
        ({"assets/repo/vendor/clamp.py": REPAIRED}, "A04", Mark.FAILED),
        ({"assets/repo/notes/old_suite.txt": HIDDEN_TEST}, "A01", Mark.FAILED),
        ({"assets/repo/notes/suite.txt": "# kept\n" + HIDDEN_TEST.partition("\n")[2]}, "A01", Mark.FAILED),
        ({"assets/repo/notes/suite.hex": HIDDEN_TEST.encode().hex()}, "A01", Mark.FAILED),
    ],
)
def test_a_repository_with_too_much_in_it(tmp_path: Path, files: dict[str, Any], rule: str, mark: Mark) -> None:
    report = audit_rows(tmp_path, [repo()], {**REPO_FILES, **files})
    assert {one.mark for one in found(report, rule)} == {mark}


@pytest.mark.parametrize(("name", "mark"), [("check", Mark.FAILED), ("other", Mark.WARNING)])
def test_a_workspace_with_compiled_files_in_it(tmp_path: Path, name: str, mark: Mark) -> None:
    files = {**TERMINAL_FILES, f"assets/tree/__pycache__/{name}.cpython-311.pyc": b"compiled"}
    assert {one.mark for one in found(audit_rows(tmp_path, [terminal()], files), "A05")} == {mark}


def test_caches_in_a_repository_do_not_reach_agents(tmp_path: Path) -> None:
    cache = {"assets/repo/tests/__pycache__/test_clamp.cpython-311.pyc": b"compiled"}
    assert complaints(audit_rows(tmp_path, [repo()], {**REPO_FILES, **cache})) == []


def test_an_older_version_of_a_hidden_test_is_public_by_right(tmp_path: Path) -> None:
    older = HIDDEN_TEST.replace("    assert clamp(-17, 4, 96) == 4\n", "")
    assert complaints(audit_rows(tmp_path, [repo()], {**REPO_FILES, "assets/repo/tests/test_clamp.py": older})) == []


def test_an_issue_that_tells_the_repair(tmp_path: Path) -> None:
    lines = "        lower_bound_of_window = minimum_of(window, fallback=low)"
    patch = PATCH.replace("+        return low", f"+{lines}").replace("@@ -1,4 +1,4 @@", "@@ -1,4 +1,4 @@")
    told = changed(repo(), "eval.gold_patch", patch)
    told = changed(told, "input.instructions", f"Just write\n{lines}\nthere.")
    assert found(audit_rows(tmp_path, [told], REPO_FILES), "A08")


def test_a_workspace_with_the_solution_in_it(tmp_path: Path) -> None:
    leaked = {"assets/tree/backup.txt": TERMINAL_FILES["hidden/solution/sorted.txt"]}
    assert found(audit_rows(tmp_path, [terminal()], {**TERMINAL_FILES, **leaked}), "A01")


def test_assets_of_a_question_are_there_to_be_read_but_not_its_hidden_files(tmp_path: Path) -> None:
    asked = row("short_answer", assets=[{"path": "data.txt"}])
    asked = changed(asked, "eval.notes", {"path": "notes.txt"})
    notes = "The answer was worked out by hand: forty-two.\n"
    report = audit_rows(tmp_path, [asked], {"hidden/notes.txt": notes, "assets/data.txt": notes})
    assert "copy" in found(report, "A01")[0].detail


@pytest.mark.parametrize(
    ("place", "value", "rule", "mark"),
    [
        ("environment.image", "python:3.12", "P32", Mark.WARNING),
        ("environment.network.allowed_domains", ["files.example.com"], "P34", Mark.WARNING),
        ("environment.timeout_seconds", 0.2, "P35", Mark.WARNING),
        ("environment.timeout_seconds", 86_000, "P35", Mark.WARNING),
        ("environment.resources.memory", "1m", "P35", Mark.WARNING),
        ("eval.tests.timeout_seconds", 0.1, "P35", Mark.WARNING),
        ("eval.candidate_policy", {"allow_sensitive_paths": ["**"]}, "P30", Mark.FAILED),
        ("eval.candidate_policy", {"allow_sensitive_paths": ["tests/conftest.py"]}, "P30", Mark.WARNING),
        ("eval.candidate_policy", {"allow_paths": ["tests/**"]}, "P30", Mark.FAILED),
    ],
)
def test_settings_that_a_row_should_not_have(tmp_path: Path, place: str, value: Any, rule: str, mark: Mark) -> None:
    report = audit_rows(tmp_path, [changed(repo(), place, value)], REPO_FILES)
    assert {one.mark for one in found(report, rule)} == {mark}


def test_settings_that_rows_share_are_told_once(tmp_path: Path) -> None:
    manifest = "id: test-pack\nversion: 1\ndefaults: {environment: {image: 'python:3.12'}}\n"
    rows = [row("short_answer", id=f"r{number}") for number in range(3)]
    rows = [changed(one, "input.question", f"What is {number} * 7?") for number, one in enumerate(rows)]
    (one,) = found(audit_rows(tmp_path, rows, manifest=manifest), "P32")
    assert "(3 rows, r0 is the first)" in one.detail
    assert (one.place, one.column) == (Place("manifest.yaml", 3), "short_answer")


def test_the_host_that_serves_the_repository(tmp_path: Path) -> None:
    served = changed(repo(), "environment.network.allowed_domains", ["code.example.org"])
    served = changed(served, "input.repo", "https://code.example.org/pkg")
    served = changed(served, "environment.image", f"x@sha256:{'0' * 64}")
    assert [one.mark for one in found(audit_rows(tmp_path, [served], REPO_FILES), "P34")] == [Mark.FAILED]


def test_tests_that_candidates_may_change(tmp_path: Path) -> None:
    reachable = changed(repo(), "eval.tests.files", REMOVED)
    reachable = changed(reachable, "eval.candidate_policy", {"allow_paths": ["tests/test_clamp.py"]})
    assert found(audit_rows(tmp_path / "a", [reachable], REPO_FILES), "P31")
    given = changed(repo(), "eval.candidate_policy", {"allow_paths": ["tests/test_clamp.py"]})
    assert found(audit_rows(tmp_path / "b", [given], REPO_FILES), "P31") == []
