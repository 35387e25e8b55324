"""`compare`, `gate`, `query` and `export` as people and CI call them, on real runs and on hostile ones."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from tests.control_runs import constant_run, tampered, write_control_pack
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import CORPUS, EVIL, controls_in

from securebench.cli import app
from securebench.cli._text import without_orders
from securebench.errors import ConfigError

ORDER = re.compile(r"^\s*::|##\[|##\w+\[", re.MULTILINE)


@pytest.fixture(autouse=True)
def no_keys(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def runs(place: Path) -> list[str]:
    pack = write_control_pack(place / "pack")
    return [str(constant_run(place, f"answers-{n}", str(n), pack=pack)) for n in (42, 43)]


@pytest.fixture(scope="module")
def hostile(place: Path) -> list[str]:
    return [str(hostile_run(place / "h1", "h1")), str(hostile_run(place / "h2", "h2", better=True))]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), standalone_mode=False)


def code(result: Result) -> object:
    if result.exception is not None:
        raise result.exception
    return result.return_value


# compare


def test_compare_prints_what_differs(runs: list[str]) -> None:
    result = call("compare", *runs)
    assert code(result) == 0
    assert "answers-43 against answers-42: no difference shown" in result.output
    assert "14 tasks: 2 won, 7 tied, 5 lost" in result.output
    assert "lost     one-0" in result.output
    assert "Not simply comparable" not in result.output


def test_compare_as_json_and_page(runs: list[str], tmp_path: Path) -> None:
    result = call("compare", *runs, "--json", "--html", str(tmp_path / "page.html"))
    assert code(result) == 0
    assert json.loads(result.output)["matches"][0]["losses"] == 5
    assert "answers-43" in (tmp_path / "page.html").read_text()
    with pytest.raises(ConfigError, match="cannot be written"):
        code(call("compare", *runs, "--html", str(tmp_path / "no" / "page.html")))


def test_strict_comparison_fails_where_runs_are_not_comparable(runs: list[str], place: Path) -> None:
    assert code(call("compare", *runs, "--strict")) == 0
    part = str(constant_run(place, "part", "43", pack=place / "pack", limit=5))
    result = call("compare", runs[0], part, "--strict")
    assert code(result) == 1
    assert "Not simply comparable" in result.output
    assert "is not of the whole pack: 5 of 14 tasks" in result.output


def test_compare_needs_two(runs: list[str]) -> None:
    with pytest.raises(ConfigError, match="two runs or more"):
        code(call("compare", runs[0]))
    with pytest.raises(ConfigError, match="was given more than once"):
        code(call("compare", runs[0], runs[0]))


# gate


def test_gate_says_each_condition_and_exits_by_them(runs: list[str]) -> None:
    passed = call("gate", runs[0], "--min-score", "60%", "--require-sealed", "--require-assurance", "pure")
    assert code(passed) == 0
    assert passed.output.count("ok  ") == 4
    failed = call("gate", runs[1], "--min-score", "0.4", "--max-drop-from", runs[0], "10%", "--json")
    assert code(failed) == 1
    assert [one["held"] for one in json.loads(failed.output)["conditions"]] == [True, True, False]
    assert code(call("gate", runs[1], "--max-drop-from", runs[0], "10%", "--significant")) == 0


def test_gate_annotates(runs: list[str]) -> None:
    result = call("gate", runs[1], "--min-score", "90%", "--format", "github")
    assert code(result) == 1
    assert result.output.splitlines()[1] == (
        "::error title=min-score%3A answers-43::score 42.9 %25; at least 90.0 %25 is required"
    )


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "a gate needs a condition"),
        (["--min-score", "60"], "give a number from 0 to 1, or a percentage"),
        (["--min-score", "nan"], "give a number from 0 to 1, or a percentage"),
        (["--max-cost", "-1"], "is no amount"),
        (["--significant", "--min-score", "1"], "is about --max-drop-from"),
        (["--require-assurance", "great"], "'great' is not one of"),
    ],
)
def test_gate_that_was_asked_wrongly_says_how(runs: list[str], arguments: list[str], words: str) -> None:
    with pytest.raises(Exception, match=re.escape(words)):
        code(call("gate", runs[0], *arguments))


def test_gate_is_shut_for_a_changed_run(place: Path) -> None:
    run = constant_run(place, "changed", "42", pack=place / "pack")
    tampered(run, '"passed":false,"score":0.0', '"passed":true,"score":1.0')
    result = call("gate", str(run), "--min-score", "0")
    assert code(result) == 1
    assert "FAIL intact: is not as it was written" in result.output


# query


def test_query_prints_a_table_csv_and_json(runs: list[str]) -> None:
    sql = "SELECT run, count(*) AS n, sum(score) AS s FROM records GROUP BY run ORDER BY run"
    assert re.search(r"answers-42\s+14\s+9\b", call("query", sql, *runs).output)
    assert list(csv.reader(io.StringIO(call("query", sql, *runs, "--format", "csv").output))) == [
        ["run", "n", "s"],
        ["answers-42", "14", "9.0"],
        ["answers-43", "14", "6.0"],
    ]
    assert json.loads(call("query", sql, *runs, "--json").output)[1] == {"run": "answers-43", "n": 14, "s": 6.0}


def test_query_prints_rows_that_a_terminal_has_no_room_for_as_blocks(
    runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT * FROM records WHERE task_id IN ('both-0', 'one-0') ORDER BY task_id"
    whole = call("query", sql, runs[0]).output
    assert re.search(r"^ *run +task_id .* harness_digest .* line *$", whole, re.MULTILINE)
    assert len(re.findall(r"sha256:[0-9a-f]{64}", whole)) >= 2
    monkeypatch.setattr("securebench.cli.query.fits", lambda table: False)
    blocks = call("query", sql, runs[0]).output
    assert [line.strip() for line in blocks.splitlines() if line.startswith("row ")] == ["row 1", "row 2"]
    assert re.search(r"^task_id +one-0 *$", blocks, re.MULTILINE)
    assert re.search(r"^failure_message +", blocks, re.MULTILINE)


def test_query_shows_its_tables() -> None:
    output = call("query", "--schema").output
    assert re.search(r"^records: ", output, re.MULTILINE)
    assert "  failure_reason    VARCHAR" in output
    assert json.loads(call("query", "--schema", "--json").output)["records"]["failure_reason"][0] == "VARCHAR"


def test_query_reads_nothing_else(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(ConfigError, match="disabled by configuration"):
        code(call("query", f"SELECT * FROM read_text('{tmp_path}/secret.txt')", *runs))
    with pytest.raises(Exception, match="give a query and runs"):
        code(call("query", "SELECT 1"))


def _processor_seconds(pid: int) -> float:
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def test_interrupted_query_ends(runs: list[str]) -> None:
    sql = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b"
    argv = [sys.executable, "-m", "securebench", "query", sql, runs[0]]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 120
    while _processor_seconds(process.pid) < 5 and time.monotonic() < deadline:  # far more than beginning takes
        time.sleep(0.1)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert errors.decode().strip().endswith("interrupted")


# export


def test_export_writes_every_format(runs: list[str], tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl", "a.xml", "a.sarif", "a.parquet"):
        assert code(call("export", *runs, "-o", str(tmp_path / name))) == 0
        assert (tmp_path / name).stat().st_size > 500
    assert len(ElementTree.fromstring((tmp_path / "a.xml").read_text())) == 2
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 28
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.jsonl", "a.parquet", "a.sarif", "a.xml"]
    tasks = call("export", *runs, "--format", "csv", "--table", "tasks").output
    assert len(tasks.splitlines()) == 29


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["-o", "x.docx"], "say which format"),
        (["--format", "parquet"], "Parquet is no text"),
        (["--format", "junit", "--table", "runs"], "junit holds every attempt"),
        (["--format", "harbor"], "a job of Harbor is a directory"),
        (["--format", "inspect"], "inspect holds one run, and these are 2"),
        (["--format", "csv", "--attempt", "2"], "--attempt is about swebench"),
        (["--format", "inspect", "-o", "log.eval"], "name it .json"),
    ],
)
def test_export_that_was_asked_wrongly_says_how(runs: list[str], arguments: list[str], words: str) -> None:
    with pytest.raises(Exception, match=words):
        code(call("export", *runs, *arguments))


@pytest.mark.parametrize("style", ["csv", "jsonl", "junit", "sarif", "inspect", "harbor", "parquet"])
def test_export_of_a_run_that_was_changed_says_so(runs: list[str], tmp_path: Path, style: str) -> None:
    changed, output = Path(shutil.copytree(runs[0], tmp_path / "changed")), tmp_path / "out"
    tampered(changed, '"passed":false', '"passed":true ')
    written = call("export", str(changed), "--format", style, "-o", str(output))
    assert code(written) == 0
    assert written.stderr == f"warning: {changed} does not verify; `securebench verify` says why\n"
    sound = call("export", runs[0], "--format", style, "-o", str(tmp_path / "sound"))
    assert (code(sound), sound.stderr) == (0, "")
    if style == "harbor":
        jobs = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("out", "sound")]
        assert [job["metadata"]["seal"] for job in jobs] == ["broken", "complete"]


def test_export_replaces_a_link_and_does_not_write_through_it(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    for name in ("out.csv", "out.parquet"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
        assert code(call("export", runs[0], "-o", str(tmp_path / name))) == 0
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("style", ["atif", "harbor"])
def test_export_never_writes_into_a_directory_that_holds_something(runs: list[str], tmp_path: Path, style: str) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(ConfigError, match="new or empty"):
        code(call("export", runs[0], "--format", style, "-o", str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("style", "name", "words"), [("atif", "t", "kept a trajectory"), ("atif", "t.jsonl", "kept a trajectory"),
                                 ("swebench", "p.jsonl", "collects a patch")]
)  # fmt: skip
def test_export_of_nothing_is_refused_and_leaves_nothing(
    runs: list[str], tmp_path: Path, style: str, name: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        code(call("export", runs[0], "--format", style, "-o", str(tmp_path / name)))
    assert list(tmp_path.iterdir()) == []


# hostile runs


OUTPUTS = {
    "compare": ["compare", "{0}", "{1}"],
    "compare json": ["compare", "{0}", "{1}", "--json"],
    "compare markdown": ["compare", "{0}", "{1}", "--format", "markdown"],
    "gate": ["gate", "{0}", "--max-drop-from", "{1}", "0", "--require-assurance", "pure", "--require-sealed"],
    "gate json": ["gate", "{0}", "--max-drop-from", "{1}", "0", "--require-assurance", "pure", "--json"],
    "gate markdown": ["gate", "{0}", "--max-drop-from", "{1}", "0", "--require-assurance", "pure", "--format", "markdown"],
    "query": ["query", "SELECT task_id, family, failure_message, tags FROM records", "{0}", "{1}"],
    "query blocks": ["query", "SELECT * FROM records", "{0}", "{1}"],
    "query one column": ["query", "SELECT failure_reason FROM records", "{0}", "{1}"],
    "query csv": ["query", "SELECT * FROM records", "{0}", "--format", "csv"],
    "query json": ["query", "SELECT * FROM records", "{0}", "--format", "json"],
    "query runs": ["query", "SELECT * FROM runs", "{0}"],
    "junit": ["export", "{0}", "--format", "junit"],
    "csv": ["export", "{0}", "--format", "csv"],
    "jsonl": ["export", "{0}", "--format", "jsonl"],
    "sarif": ["export", "{0}", "--format", "sarif"],
    "inspect": ["export", "{0}", "--format", "inspect"],
}  # fmt: skip
DATA = {"compare json", "gate json", "query csv", "query json", "junit", "csv", "jsonl", "sarif", "inspect"}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("columns", ["40", "80", "300"])
def test_no_output_holds_anything_that_steers(
    hostile: list[str], output: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    if output == "query blocks":
        monkeypatch.setattr("securebench.cli.query.fits", lambda table: False)
    result = call(*(argument.format(*hostile) for argument in OUTPUTS[output]))
    assert code(result) in {0, 1}
    assert len(result.output) > 100
    assert not controls_in(result.output)
    if output not in DATA:
        assert not ORDER.search(result.output)


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_annotations_of_a_hostile_run_are_one_order_each(hostile: list[str], command: str) -> None:
    arguments = {
        "compare": hostile,
        "gate": [hostile[0], "--max-drop-from", hostile[1], "0", "--require-assurance", "pure"],
    }[command]
    lines = call(command, *arguments, "--format", "github").output.splitlines()
    assert len(lines) >= 3
    assert all(re.fullmatch(r"::(error|warning|notice) title=[^:,]*::.*", line) for line in lines)
    assert not any(controls_in(line, keep="") or "##[" in line for line in lines)


def test_orders_are_taken_out_and_nothing_else() -> None:
    assert without_orders("::error::x") == ": :error::x"
    assert without_orders("  ::x\na::b") == "  : :x\na::b"
    assert without_orders("see ##[error] and ##vso[task]") == "see # #[error] and # #vso[task]"
    assert without_orders("## a heading, t.py::test") == "## a heading, t.py::test"
    for text in CORPUS.values():
        assert not ORDER.search(without_orders(text))


TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "main",
        "section",
        "small",
        "footer",
        "div",
        "p",
        "span",
    ),
    *("h1", "h2", "h3", "ul", "li", "b", "code", "details", "summary"),
    *(
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "svg",
        "symbol",
        "path",
        "line",
        "circle",
        "rect",
        "text",
    ),
}


class Seen(HTMLParser):
    """Elements and attributes of a page, as a browser's parser would find them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_page_of_hostile_runs_holds_their_texts_as_text(hostile: list[str], tmp_path: Path) -> None:
    code(call("compare", *hostile, "--html", str(tmp_path / "page.html"), "--format", "github"))
    page = (tmp_path / "page.html").read_text()
    seen = Seen()
    seen.feed(page)
    assert seen.tags <= TAGS
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in {"src", "srcdoc", "action"}]
    assert {value for name, value in seen.attributes if name == "href"} <= {"#main"}
    assert not any(EVIL in value for name, value in seen.attributes if name not in {"content"})
    assert not controls_in(page)
    text = "".join(seen.text)
    flipped = [one for number, one in enumerate(TEXTS.values()) if number % 4 == 1]
    assert "<script src=//evil.invalid/x.js>" in text or any(one in text for one in flipped)
    assert "1337" not in text  # 7 * 191, as no template says
