"""Reports as a table, SARIF and a page: everything is there, and nothing a stranger wrote gets out of its place."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.unit.audit.fake_suite import HOSTILE

from securebench.audit.report.data import as_json
from securebench.audit.report.model import Finding, Mark, Place, Report, Section, heaviest
from securebench.audit.report.page import page
from securebench.audit.report.sarif import sarif
from securebench.audit.report.table import lines


def _finding(mark: Mark, column: str = "one", **more: object) -> Finding:
    values = {"rule": "X01", "title": "A thing", "group": "X", "column": column, "mark": mark, "subject": f"X01/{mark}"}
    return Finding(**(values | more))  # type: ignore[arg-type]


REPORT = Report(
    title="A report",
    passed=False,
    time=1_700_000_000.0,
    facts={"kernel": "6.1"},
    groups={"X": "Things", "Y": "Others"},
    columns=("one", "two"),
    findings=(
        _finding(Mark.OK),
        _finding(Mark.SKIPPED, detail="no git"),
        _finding(Mark.WARNING, place=Place("tasks.jsonl", 7)),
        _finding(Mark.FAILED, "two", detail="it worked", fix="Repair it.", place=Place("a dir/x.py", 0)),
    ),
    rules={"X01": "It never works.", "X01/ok": "Tries."},
    sections=(Section("Not claimed", "Careful.", (("X01", "Much."),)),),
)
EVERYWHERE = replace(
    REPORT,
    title=HOSTILE,
    facts={HOSTILE: HOSTILE},
    groups={HOSTILE: HOSTILE},
    columns=(HOSTILE,),
    findings=tuple(
        Finding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, mark, HOSTILE, HOSTILE, Place(HOSTILE, 3), HOSTILE) for mark in Mark
    ),
    lead=HOSTILE,
    rules={HOSTILE: HOSTILE},
    words=dict.fromkeys(Mark, HOSTILE),
    sections=(Section(HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),)),),
)


class _Page(HTMLParser):
    """Elements and attributes as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_heaviest_mark_is_the_cells() -> None:
    assert heaviest(REPORT.findings) is Mark.FAILED
    assert heaviest([_finding(Mark.OK), _finding(Mark.SKIPPED)]) is Mark.SKIPPED
    assert heaviest([]) is None


def test_the_table_shows_the_map_and_what_to_act_on() -> None:
    text = "\n".join(lines(REPORT))
    assert "1 of 3 !" in text
    assert "1 of 1 ✗" in text
    assert "it worked" in text
    assert "→ Repair it." in text
    assert "tasks.jsonl:7" in text
    assert text.endswith("NOT PASSED")
    assert "X01/ok" not in text
    assert "X01/ok" in "\n".join(lines(REPORT, verbose=True))


def test_every_format_says_whether_it_passed() -> None:
    good = replace(REPORT, passed=True)
    assert list(lines(good))[-1] == "PASSED"
    assert "✓</span> Passed" in page(good)
    assert "Not passed" in page(REPORT)
    assert as_json(good)["passed"] is sarif(good)["runs"][0]["properties"]["passed"] is True


def test_sarif_has_the_structure_of_the_standard() -> None:
    value = sarif(REPORT)
    assert (value["version"], value["$schema"].endswith("sarif-schema-2.1.0.json")) == ("2.1.0", True)
    (run,) = value["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["X01"]
    assert rules[0]["shortDescription"] == {"text": "A thing"}
    assert rules[0]["fullDescription"] == {"text": "It never works."}
    kinds = [(one["kind"], one["level"]) for one in run["results"]]
    assert kinds == [("pass", "none"), ("notApplicable", "none"), ("fail", "warning"), ("fail", "error")]
    for one in run["results"]:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["message"]["text"]
        assert one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
        assert len(one["partialFingerprints"]["securebench/v1"]) == 64
    assert len({one["partialFingerprints"]["securebench/v1"] for one in run["results"]}) == 4
    physical = [one["locations"][0].get("physicalLocation") for one in run["results"]]
    assert physical[:2] == [None, None]
    assert physical[2] == {"artifactLocation": {"uri": "tasks.jsonl"}, "region": {"startLine": 7}}
    assert physical[3] == {"artifactLocation": {"uri": "a%20dir/x.py"}, "region": {"startLine": 1}}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", run["invocations"][0]["startTimeUtc"])


def test_a_finding_keeps_its_fingerprint_when_only_its_detail_changes() -> None:
    changed = replace(REPORT, findings=tuple(replace(one, detail="other words") for one in REPORT.findings))
    prints = [[one["partialFingerprints"] for one in sarif(r)["runs"][0]["results"]] for r in (REPORT, changed)]
    assert prints[0] == prints[1]


def test_the_page_is_whole_and_loads_nothing() -> None:
    text = page(REPORT)
    found = _Page(text)
    names = [tag for tag, _ in found.tags]
    assert not {"script", "img", "iframe", "object", "form", "base"} & set(names)
    assert not [attribute for _, attrs in found.tags for attribute in attrs if attribute.startswith("on")]
    assert not [attrs for _, attrs in found.tags if "style" in attrs], "the policy would refuse it"
    links = [attrs["href"] or "" for _, attrs in found.tags if "href" in attrs]
    assert links
    assert all(link.startswith("#") for link in links)
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)
    assert "url(" not in text
    assert "@import" not in text


def test_the_policy_allows_exactly_the_style_that_is_there() -> None:
    text = page(REPORT)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(attrs["content"] for tag, attrs in _Page(text).tags if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_the_page_can_be_read_without_seeing_colours() -> None:
    found = _Page(page(REPORT))
    tables = [attrs for tag, attrs in found.tags if tag == "table"]
    scopes = {attrs.get("scope") for tag, attrs in found.tags if tag == "th"}
    assert tables
    assert scopes == {"col", "row"}
    words = " ".join(found.text)
    for word in ("1 passed, 1 not looked at, 1 warnings", "It never works.", "Tries.", "Much.", "✗", "no git"):
        assert word in words


@pytest.mark.parametrize(
    "make", [page, lambda r: "\n".join(lines(r, verbose=True)), lambda r: json.dumps(sarif(r), ensure_ascii=False)]
)
def test_no_control_character_gets_through(make: object) -> None:
    text = make(EVERYWHERE)  # type: ignore[operator]
    text.encode()  # no lone surrogate
    assert not set(text) & {"\x1b", "\x00", "\u202e", "\r"}


def test_hostile_text_stays_text_on_the_page() -> None:
    expected, found = _Page(page(REPORT)), _Page(page(EVERYWHERE))
    assert "script" not in [tag for tag, _ in found.tags]
    assert "49" not in "".join(found.text)
    assert {tag for tag, _ in found.tags} == {tag for tag, _ in expected.tags}
    assert {name for _, attrs in found.tags for name in attrs} <= {name for _, attrs in expected.tags for name in attrs}


def test_many_findings_become_a_bar_that_shows_the_one_that_failed() -> None:
    many = replace(REPORT, findings=(*[_finding(Mark.OK, subject=str(n)) for n in range(400)], _finding(Mark.FAILED)))
    found = _Page(page(many))
    rectangles = [attrs for tag, attrs in found.tags if tag == "rect" and attrs["height"] == "9" and attrs["x"] != ".5"]
    assert [attrs["class"] for attrs in rectangles] == ["t-failed", "t-ok"]
    assert all(float(attrs["width"] or 0) >= 9 for attrs in rectangles)
