"""Exports: valid in their format, complete, and with nothing in them that their reader obeys."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.control_runs import ANSWERS, constant_run
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import CORPUS, controls_in

from securebench._text import visible
from securebench.reports.export.findings import findings
from securebench.reports.export.formats import TEXTS as FORMATS
from securebench.reports.export.formats import export_text
from securebench.reports.runs import Run, load_run, load_runs
from securebench.reports.sarif import said
from securebench.reports.sheets import cell, csv_lines
from securebench.reports.tables import RECORDS, RUNS, TABLES, TASKS, Table
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(write_run(tmp_path_factory.mktemp("f") / "faulty", SyntheticRun(tasks=40, attempts=2, faults=0.2)))


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(constant_run(tmp_path_factory.mktemp("r"), "real", "42"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(hostile_run(tmp_path_factory.mktemp("h") / "hostile"))


def text(style: str, *runs: Run, table: Table = RECORDS) -> str:
    return "".join(export_text(runs, style, table))


# CSV


@pytest.mark.parametrize("name", CORPUS)
def test_cell_is_no_formula(name: str) -> None:
    written = cell(CORPUS[name])
    assert isinstance(written, str)
    assert not re.match(r"[\s\"']*[=+\-@|%＝＋－＠]", written) or written.startswith("'")
    assert not re.search(r"[;,][\s\"]*[=+\-@|%＝＋－＠]", written)  # where a semicolon ends a cell
    assert not controls_in(written, keep="")


def test_cell_that_begins_a_formula_is_made_text_and_others_stay() -> None:
    assert cell("=1+1") == "'=1+1"
    assert cell("-5 degrees") == "'-5 degrees"
    assert cell("\t=1") == "\\x09=1"  # the tab is written out, so that nothing begins with it
    assert cell("a=1") == "a=1"
    assert cell("a; b, c=1; 2") == "a; b, c=1; 2"
    assert cell("x;=1;y, +2") == "x;'=1;y, '+2"
    assert cell("=1;@x") == "'=1;'@x"
    assert cell("") == ""
    assert cell(" ") == " "
    assert (cell(-0.5), cell(-3), cell(True), cell(None)) == (-0.5, -3, "true", "")
    assert cell(["=1", "b"]) == '["=1","b"]'
    assert cell(datetime(2026, 1, 2)) == "2026-01-02T00:00:00"


@pytest.mark.parametrize("name", CORPUS)
def test_csv_reads_back_as_one_cell_in_one_line(name: str) -> None:
    lines = list(csv_lines(["a", "b"], [[CORPUS[name], 1]]))
    assert len("".join(lines).splitlines()) == 2
    [_, (first, second)] = csv.reader(io.StringIO("".join(lines)))
    assert first.replace("'", "") == visible(CORPUS[name], keep="").replace("'", "")
    assert second == "1"


def test_csv_without_care_is_a_formula() -> None:
    """The control: a plain writer writes what a spreadsheet computes."""
    buffer = io.StringIO()
    csv.writer(buffer).writerow([CORPUS["formula plus"]])
    assert buffer.getvalue().startswith("+cmd")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_csv_and_json_lines_hold_every_row_and_column(real: Run, faulty: Run, table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(text("csv", real, faulty, table=table))))
    objects = [json.loads(line) for line in text("jsonl", real, faulty, table=table).splitlines()]
    names = [column.name for column in table.columns]
    assert list(rows[0]) == list(objects[0]) == names
    expected = {"records": len(real.rows) + len(faulty.rows), "tasks": 14 + 40, "runs": 2}[table.name]
    assert len(rows) == len(objects) == expected


def test_table_of_tasks_counts_attempts(faulty: Run) -> None:
    for row in TASKS.rows([faulty]):
        task = dict(zip((column.name for column in TASKS.columns), row, strict=True))
        mine = [one for one in faulty.rows if one.task_id == task["task_id"]]
        assert task["judged"] == sum(one.judged for one in mine)
        assert task["errors"] == sum(one.status == "error" for one in mine)
        assert (task["score"] is None) == (task["judged"] == 0)


def test_table_of_runs_has_the_summary_of_each(real: Run) -> None:
    [row] = RUNS.rows([real])
    run = dict(zip((column.name for column in RUNS.columns), row, strict=True))
    assert run["score"] == real.summary.score
    assert real.summary.interval is not None
    assert (run["score_low"], run["score_high"]) == (real.summary.interval["low"], real.summary.interval["high"])


# JUnit


def cases(root: ElementTree.Element) -> Counter[str]:
    return Counter(case[0].tag if len(case) else "passed" for case in root.iter("testcase"))


def test_junit_has_a_case_for_every_planned_attempt(real: Run, faulty: Run) -> None:
    root = ElementTree.fromstring(text("junit", real, faulty))
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["real", "synthetic"]
    for suite, run in zip(suites, (real, faulty), strict=True):
        found = cases(suite)
        assert int(suite.attrib["tests"]) == sum(found.values()) == run.plan.total
        assert int(suite.attrib["failures"]) == found["failure"] == run.summary.failed
        assert int(suite.attrib["errors"]) == found["error"] == run.summary.errors
        assert found["passed"] == run.summary.passed
        assert float(suite.attrib["time"]) >= 0
    names = [case.get("name") for case in suites[0].iter("testcase")]
    assert names == list(ANSWERS)
    failure = next(root.iter("failure"))
    assert failure.get("type") == "wrong_answer"
    assert "candidates.jsonl:" in (failure.text or "")


def test_junit_shows_attempts_without_a_record_as_errors(real: Run) -> None:
    from dataclasses import replace

    part = replace(real, rows=real.rows[:10], summary=replace(real.summary, failed=1, errors=0))
    root = ElementTree.fromstring(text("junit", part))
    assert cases(root)["error"] == 4
    assert root[0].attrib["errors"] == "4"


def test_junit_of_a_hostile_run_is_valid_and_says_what_was_there(hostile: Run) -> None:
    written = text("junit", hostile)
    root = ElementTree.fromstring(written.encode())
    assert sum(cases(root).values()) == len(TEXTS)
    assert cases(root)["skipped"] == hostile.summary.pending
    assert {case.get("name") for case in root.iter("testcase")} == {visible(one, keep="") for one in TEXTS.values()}
    assert {element.tag for element in root.iter()} == {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "skipped",
    }  # fmt: skip
    assert "<![CDATA[" not in written
    assert "]]>" not in written
    assert "<!" not in written


def test_xml_without_care_is_broken() -> None:
    """The control: these texts do break a document they are put into as they are."""
    for name in ("nul", "cdata", "xml", "ansi colours", "noncharacters", "half a tag"):
        with pytest.raises(ElementTree.ParseError):
            ElementTree.fromstring(f"<a>{CORPUS[name]}</a>")


# SARIF


def test_sarif_has_a_result_for_every_attempt(real: Run, faulty: Run) -> None:
    [run] = json.loads(text("sarif", real, faulty))["runs"]
    results, rules = run["results"], run["tool"]["driver"]["rules"]
    assert len(results) == len(real.rows) + len(faulty.rows)
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in results)
    assert len({rule["id"] for rule in rules}) == len(rules)
    kinds = Counter(one["kind"] for one in results)
    assert kinds["pass"] == real.summary.passed + faulty.summary.passed
    assert {one["level"] for one in results if one["kind"] != "fail"} == {"none"}
    assert sum(one["ruleId"] == "host_failed" for one in results) == faulty.summary.errors
    failed = next(one for one in results if one["kind"] == "fail")
    place = failed["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/candidates.jsonl")
    assert place["region"]["startLine"] >= 1
    assert len({one["partialFingerprints"]["securebench/v1"] for one in results}) == len(results)
    assert run["properties"]["runs"]["real"]["seal"] == "complete"


def test_sarif_in_pieces_is_the_whole_of_it(hostile: Run) -> None:
    log = findings([hostile])
    assert json.loads("".join(log.pieces())) == log.as_json()
    assert json.loads("".join(findings([]).pieces()))["runs"][0]["results"] == []


def test_sarif_is_of_the_time_of_the_first_run_and_the_same_whenever_it_is_written(real: Run, hostile: Run) -> None:
    [log] = json.loads(text("sarif", real, hostile))["runs"]
    planned = min(real.plan.created_at, hostile.plan.created_at)
    assert log["invocations"][0]["startTimeUtc"] == f"{planned[:19]}Z"


def test_sarif_of_a_run_planned_on_no_day_has_no_time(real: Run) -> None:
    run = replace(real, plan=real.plan.model_copy(update={"created_at": "2026-99-99T00:00:00Z"}))
    assert json.loads(text("sarif", run))["runs"][0]["invocations"] == [{"executionSuccessful": True}]


def fingerprints(run: Run) -> dict[str, str]:
    [log] = json.loads(text("sarif", run))["runs"]
    return {
        one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: one["partialFingerprints"]["securebench/v1"]
        for one in log["results"]
    }


def test_sarif_knows_an_attempt_again_whatever_came_of_it(tmp_path: Path) -> None:
    first, second = (load_run(constant_run(tmp_path / answer, "same", answer)) for answer in ("42", "43"))
    assert [row.status for row in first.rows] != [row.status for row in second.rows]
    assert fingerprints(first) == fingerprints(second)
    other = load_run(constant_run(tmp_path, "other", "42"))
    assert not set(fingerprints(first).values()) & set(fingerprints(other).values())


def test_sarif_names_the_directory_of_a_run_in_which_it_was_asked_for(
    real: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(real.directory)
    [log] = json.loads(text("sarif", load_run(Path())))["runs"]
    places = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in log["results"]}
    assert places == {f"{real.directory.name}/candidates.jsonl"}


@pytest.mark.parametrize("name", CORPUS)
def test_message_of_sarif_has_no_link_and_nothing_to_fill_in(name: str) -> None:
    """Read as its viewers do: a backslash takes the meaning of what follows, and so does a brace of another."""
    message = said(CORPUS[name])
    assert not re.search(r"[\[\]{}]", re.sub(r"\\[\\\[\]]|\{\{|\}\}", "", message))
    assert "\\" not in re.sub(r"\\[\\\[\]]", "", message)
    unescaped = re.sub(r"\\([\\\[\]])", r"\1", message).replace("{{", "{").replace("}}", "}")
    assert unescaped == visible(CORPUS[name], keep="\n")


def test_messages_of_a_hostile_run_have_no_link_in_sarif(hostile: Run) -> None:
    [log] = json.loads(text("sarif", hostile))["runs"]
    rules = log["tool"]["driver"]["rules"]
    told = [one["message"]["text"] for one in log["results"]] + [rule["shortDescription"]["text"] for rule in rules]
    assert any(r"\[see\](https://" in one for one in told)
    assert not any(re.search(r"(?<!\\)\[", one.replace(r"\\", "")) for one in told)


# Everything


@pytest.mark.parametrize("style", FORMATS)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_export_of_a_hostile_run_is_inert_text(hostile: Run, style: str, table: Table) -> None:
    written = text(style, hostile, table=table)
    assert not controls_in(written)
    assert written.encode("utf-8")
    if style in {"jsonl", "sarif"}:
        assert not any(controls_in(value, keep="\n") for value in _strings(written, style))
    if style == "csv":
        for row in list(csv.reader(io.StringIO(written)))[1:]:
            assert not any(re.match(r"\s*[=+@＝＋－＠]|\s*-\D", value) for value in row)


def _strings(written: str, style: str) -> list[str]:
    values = [json.loads(written)] if style == "sarif" else [json.loads(line) for line in written.splitlines()]
    found: list[str] = []
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            found.append(value)
    return found


def test_private_values_are_in_no_export(tmp_path: Path) -> None:
    """The marker is an accepted answer; the control shows that the public question is not exported either, but that the
    name of the task, which is public, is."""
    from tests.control_runs import write_control_pack

    pack = write_control_pack(tmp_path / "pack", {"seen-task": (987654321,)})
    runs = load_runs([constant_run(tmp_path, "private", "5", pack=pack)])
    for style in FORMATS:
        for table in TABLES if style in {"csv", "jsonl"} else (RECORDS,):
            written = "".join(export_text(runs, style, table))
            assert "987654321" not in written
            assert "seen-task" in written or table is RUNS


def test_digest_of_a_row_is_in_no_export(real: Run) -> None:
    """Whoever knows the public part of a row tries its few possible answers until the digest is right."""
    digests = [task.digest.removeprefix("sha256:") for task in real.plan.tasks]
    assert digests
    assert "row_digest" not in {column.name for table in TABLES for column in table.columns}
    for style in FORMATS:
        for table in TABLES if style in {"csv", "jsonl"} else (RECORDS,):
            written = "".join(export_text([real], style, table))
            assert not [digest for digest in digests if digest in written]
