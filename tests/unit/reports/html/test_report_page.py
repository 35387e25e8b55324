"""The report as a page, without a browser: what is in it, what is not, and that its data tells the same."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.hostile_run import TEXTS, hostile_run
from tests.injection import controls_in

from securebench.reports.content import content_of
from securebench.reports.html.blocks import unpack
from securebench.reports.html.report_page import report_page
from securebench.reports.html.strip import MOST_MARKS, strips
from securebench.reports.html.task_table import MOST_TASKS, task_table
from securebench.reports.runs import load_run, load_runs
from securebench.testing.synthetic_run import SyntheticRun, write_run

EMPTY = {"meta", "br", "img", "input", "path", "link"}


class Elements(HTMLParser):
    """What a browser would find, and that what is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action"}]
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(*runs: Path) -> str:
    return report_page([content_of(run) for run in load_runs(runs)])


def packed(text: str, kind: str) -> list[object]:
    return [
        unpack(found)
        for found in re.findall(rf'<script type="application/octet-stream" id="r\d+-{kind}[^"]*">([^<]*)<', text)
    ]


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(write_run(tmp_path_factory.mktemp("page") / "run", SyntheticRun(tasks=30, transcripts=1.0)))


def test_it_is_well_formed_and_leads_nowhere_else(ordinary: str) -> None:
    found = Elements(ordinary)
    assert all(address.startswith("#") for address in found.addresses)
    assert not {"img", "iframe", "object", "form", "base", "link"} & set(found.tags)
    assert not [name for name in found.attributes if name.startswith("on") or name == "style"]
    assert "url(" not in ordinary
    assert "@import" not in ordinary
    assert "http:" not in ordinary
    assert "https:" not in ordinary


def test_every_part_is_there(ordinary: str) -> None:
    told = " ".join(Elements(ordinary).text)
    for words in (
        *("95 % interval", "pass@k", "pass^k", "Score by family", "By difficulty", "By tag", "By assurance"),
        *("Every attempt", "Why attempts failed", "Time per attempt", "Tokens per attempt", "Cost per attempt"),
        *("Score against cost", "Integrity", "What this result does not prove", "Tasks", "Failures in detail"),
        *("What was run", "pack digest", "example-large", "tampering"),
    ):
        assert words in told, words


def test_all_details_are_in_its_data(ordinary: str, tmp_path: Path) -> None:
    assert len(packed(ordinary, "index")) == 1
    blocks = str(packed(ordinary, "block"))
    assert blocks.count("Attempt 1: ") == blocks.count("Attempt 3: ") == 30
    assert "Transcript" in blocks
    assert "calls " in blocks


def test_hostile_names_and_texts_stay_text(tmp_path: Path, ordinary: str) -> None:
    text = page(hostile_run(tmp_path / "run"))
    found, known = Elements(text), Elements(ordinary)
    assert set(found.tags) <= set(known.tags) | {"details"}
    assert found.attributes <= known.attributes
    assert all(address.startswith("#") for address in found.addresses)
    assert controls_in(text) == []
    assert controls_in(str(packed(text, "index")) + str(packed(text, "block"))) == []
    assert len(packed(text, "block")) > 1
    assert "1337" not in text.replace("sha256", ""), "no template was evaluated"


def test_hidden_values_of_records_never_come_near_it(tmp_path: Path) -> None:
    def hide(record: dict[str, object]) -> None:
        record["hidden_values"] = {"answer": "HIDDEN"}
        record["resource_summary"] = {
            "question": {"visibility": "public", "value": "PUBLIC"},
            "answer": {"visibility": "hidden", "value": "HIDDEN"},
            "tests": {"visibility": "evaluation_inputs", "value": "HIDDEN"},
        }

    text = page(write_run(tmp_path / "run", SyntheticRun(tasks=6, alter=hide)))
    everything = text + str(packed(text, "block")) + str(packed(text, "index"))
    assert "PUBLIC" in everything
    assert "HIDDEN" not in everything


def test_without_details_nothing_that_anybody_wrote_is_in_it(tmp_path: Path) -> None:
    def mark(record: dict[str, object]) -> None:
        for name in ("producer_stdout", "producer_stderr", "verifier_stdout", "verifier_stderr", "failure_message"):
            record[name] = "WRITTEN"
        record["candidate_patch" if record["candidate_patch"] else "candidate_text"] = "WRITTEN"

    run = write_run(tmp_path / "run", SyntheticRun(tasks=6, alter=mark, transcripts=1.0))
    contents = [content_of(load_run(run))]
    full, bare = report_page(contents), report_page(contents, details=False)
    assert "WRITTEN" in full + str(packed(full, "block"))
    assert packed(bare, "block") == []
    assert "WRITTEN" not in bare + str(packed(bare, "index"))


def test_several_runs_have_an_overview_and_ids_of_their_own(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, SyntheticRun(run_id=name, tasks=8, seed=n)) for n, name in enumerate("abc")]
    text = page(*runs)
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert "Overview" in text
    assert "Score against cost of each run" in text
    assert "different benchmarks" not in text
    other = write_run(tmp_path / "d", SyntheticRun(run_id="d", tasks=4))
    assert "over different tasks of the pack" in page(*runs, other)


@pytest.mark.parametrize("kind", ["nothing judged", "no records", "one task"])
def test_odd_runs_have_a_page(tmp_path: Path, kind: str) -> None:
    wanted = {"nothing judged": SyntheticRun(tasks=3, faults=1.0), "one task": SyntheticRun(tasks=1, attempts=1)}
    place = write_run(tmp_path / "run", wanted.get(kind, SyntheticRun(tasks=2)))
    if kind == "no records":
        (place / "candidates.jsonl").write_bytes(b"")
    told = " ".join(Elements(page(place)).text)
    if kind == "no records":
        assert "Not verified" in told
        assert "There is no attempt yet." in told
    elif kind == "nothing judged":
        assert "nothing was judged" in told


def test_many_attempts_become_a_picture_and_a_few_marks(tmp_path: Path) -> None:
    few = content_of(load_run(write_run(tmp_path / "few", SyntheticRun(tasks=8))))
    assert all(strip.picture is None and strip.columns for strip in strips(few.tasks))
    many = few.tasks * (MOST_MARKS // len(few.tasks))
    assert all(strip.picture is not None and not strip.columns for strip in strips(many))
    assert len(task_table(few.tasks * 3000).first) + len(task_table(few.tasks * 3000).rest) == MOST_TASKS
    assert task_table(few.tasks * 3000).left_out == 8 * 3000 - MOST_TASKS


def test_the_most_solved_come_first(tmp_path: Path) -> None:
    content = content_of(load_run(write_run(tmp_path / "run", SyntheticRun(tasks=60))))
    for strip in strips(content.tasks):
        passed = [column.statuses.count("passed") for column in strip.columns]
        assert passed == sorted(passed, reverse=True)
        assert sum(map(int, re.findall(r"(\d+) (?:solved|in some|in none)", strip.words))) == len(strip.columns)


def test_every_hostile_text_is_on_the_page(tmp_path: Path) -> None:
    told = "".join(Elements(page(hostile_run(tmp_path / "run"))).text)
    for name in ("script", "jinja value", "ansi colours", "sql"):
        assert TEXTS[name].replace("\x1b", "\\x1b") in told, name
