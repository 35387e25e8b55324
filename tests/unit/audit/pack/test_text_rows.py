"""Rules about rows that are judged as text: each finds the pack that has the defect and leaves its sound twin alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.packs import Row, changed, row
from tests.unit.audit.pack.auditing import audit_rows, choice, complaints, found, number_row

from securebench.audit.report.model import Mark, Place

FREE = row("free_response")


def rubric(*accepted: str, **changes: Any) -> dict[str, Any]:
    return {"rubric": {"type": "contains_any", "accepted_answers": list(accepted), **changes}}


def test_a_sound_pack_has_nothing_against_it_and_a_verdict_for_every_row(tmp_path: Path) -> None:
    report = audit_rows(tmp_path, [choice(number) for number in range(40)])
    assert complaints(report) == []
    assert report.passed
    verdicts = [one for one in report.findings if one.rule == "P00"]
    assert [(one.subject, one.mark) for one in verdicts] == [(f"q{number}", Mark.OK) for number in range(40)]
    assert verdicts[3].place == Place("tasks.jsonl", 4)


@pytest.mark.parametrize(
    ("rule", "defect", "sound"),
    [
        ("P01", {"prompt": "harbour"}, {"prompt": "What is a haven?"}),
        ("A08", {"prompt": "Who wrote it? Answer: harbour"}, {"prompt": "Who wrote it? Answer:"}),
        ("A08", {"prompt": "Decode aGFyYm91cmhhcmJvdXI=: which word is it?"}, {"prompt": "Which word is it?"}),
    ],
)
def test_public_text_that_gives_the_answer_away(tmp_path: Path, rule: str, defect: Any, sound: Any) -> None:
    accepted = rubric("harbourharbour" if "Decode" in defect["prompt"] else "harbour")
    report = audit_rows(tmp_path / "defect", [row("free_response", input=defect, eval=accepted)])
    (one,) = found(report, rule)
    assert (one.subject, one.place) == ("free-1", Place("tasks.jsonl", 1))
    assert complaints(audit_rows(tmp_path / "sound", [row("free_response", input=sound, eval=accepted)])) == []


def test_a_long_answer_that_stands_in_the_question_is_told_and_in_the_text_to_be_read_is_not(tmp_path: Path) -> None:
    answer = "the third lighthouse keeper of Skerryvore in 1873"
    asked = {"prompt": f"Was it {answer} who left?", "context": "A story."}
    report = audit_rows(tmp_path / "a", [row("free_response", input=asked, eval=rubric(answer))])
    assert [one.mark for one in found(report, "A08")] == [Mark.WARNING]
    read = {"prompt": "Who left?", "context": f"In the end {answer} left."}
    assert complaints(audit_rows(tmp_path / "b", [row("free_response", input=read, eval=rubric(answer))])) == []


def test_cues_that_are_right_by_chance_are_examples(tmp_path: Path) -> None:
    rows = [
        changed(choice(n), "input.question", f"Example: pick one. Answer: A\nPlot {n * 31 % 83}?") for n in range(12)
    ]
    assert found(audit_rows(tmp_path, rows), "A08") == []


def test_nothing_that_passes(tmp_path: Path) -> None:
    """`:` is no word of the answer, so a rubric that accepts a shape is the way to get one."""
    report = audit_rows(tmp_path, [row("free_response", input={"prompt": "Say it."}, eval=rubric("null"))])
    assert [one.rule for one in report.findings if one.mark is Mark.FAILED and one.rule != "P00"] == ["J01"]
    assert not report.passed


def test_a_list_of_everything_that_passes(tmp_path: Path) -> None:
    asked = {"prompt": "Which numbers are there?"}
    loose = rubric("5", min_token_f1=0.001)
    assert found(audit_rows(tmp_path / "loose", [row("free_response", input=asked, eval=loose)]), "J02")
    strict = rubric("5")
    assert complaints(audit_rows(tmp_path / "strict", [row("free_response", input=asked, eval=strict)])) == []


@pytest.mark.parametrize(("share", "mark"), [(3, Mark.WARNING), (1, Mark.FAILED)])
def test_one_letter_that_is_right_too_often(tmp_path: Path, share: int, mark: Mark) -> None:
    rows = [choice(number, 2 if number % share == 0 else None) for number in range(72)]
    marks = {one.mark for one in found(audit_rows(tmp_path, rows), "P03") if "'C'" in one.detail}
    assert marks == {mark}


def test_one_answer_that_most_rows_have(tmp_path: Path) -> None:
    rows = [number_row(n, f"Plot {n * 17 % 101}, how deep?", 8 if n % 2 else 200 + n) for n in range(40)]
    assert any("'8'" in one.detail for one in found(audit_rows(tmp_path, rows), "P03"))


def test_a_rule_of_thumb_that_scores(tmp_path: Path) -> None:
    rows = []
    for number in range(40):
        one = choice(number)
        right = one["eval"]["answer"]
        rows.append(changed(one, f"input.choices.{right}", one["input"]["choices"][right] + ", and no other"))
    assert any("longest" in one.detail for one in found(audit_rows(tmp_path / "long", rows), "P04"))
    sums = [number_row(n, f"What is {n + 13} plus {n * 3 + 1}?", n * 4 + 14) for n in range(30)]
    assert any("sum" in one.detail for one in found(audit_rows(tmp_path / "sums", sums), "P04"))


@pytest.mark.parametrize("metadata", [{"answer": "B"}, {"source": {"label": 1}}])
def test_metadata_that_tells_the_answer(tmp_path: Path, metadata: Row) -> None:
    report = audit_rows(tmp_path, [row("multiple_choice", metadata=metadata)])
    assert len(found(report, "P11")) == 1
    harmless = [choice(n, metadata={"level": n % 3, "topic": "trees"}) for n in range(24)]
    assert found(audit_rows(tmp_path / "harmless", harmless), "P11") == []


def test_an_id_that_tells_the_answer(tmp_path: Path) -> None:
    rows = [choice(n, id=f"tree-{n}-{'ABCD'[choice(n)['eval']['answer']]}") for n in range(8)]
    assert "of the id" in found(audit_rows(tmp_path, rows), "P11")[0].detail


def test_metadata_with_the_reference_in_it(tmp_path: Path) -> None:
    reference = "Norway has had its seat of government in Oslo since 1814."
    asked = changed(FREE, "eval.reference_answer", reference)
    (one,) = found(audit_rows(tmp_path, [asked | {"metadata": {"notes": reference}}]), "A01")
    assert one.mark is Mark.FAILED


def test_notes_of_the_author_that_are_public_too(tmp_path: Path) -> None:
    notes = "Picked because Linnaeus named it in 1753 after the Hessian gardener."
    asked = changed(choice(1, metadata={"remark": notes}), "eval.author_notes", {"why": [notes]})
    assert [one.mark for one in found(audit_rows(tmp_path, [asked]), "A01")] == [Mark.FAILED]


def test_rows_that_ask_the_same(tmp_path: Path) -> None:
    again = [choice(1), changed(choice(1) | {"id": "again"}, "input.question", choice(1)["input"]["question"].upper())]
    assert [one.subject for one in found(audit_rows(tmp_path / "a", again), "P40")] == ["again"]
    other = [choice(1, 0), choice(1, 1) | {"id": "other"}]
    assert [one.mark for one in found(audit_rows(tmp_path / "b", other), "P40")] == [Mark.FAILED]


LONG = "The harbour master counts the ships that arrive before noon on the first day of every month and writes it down"


def test_rows_that_ask_nearly_the_same(tmp_path: Path) -> None:
    rows = [number_row(1, f"{LONG}, how many?", 12), number_row(2, f"So {LONG}, how many?", 12)]
    assert [one.subject for one in found(audit_rows(tmp_path / "near", rows), "P41")] == ["n2"]
    rows = [number_row(1, f"{LONG} in 1901, how many?", 12), number_row(2, f"{LONG} in 1902, how many?", 12)]
    assert found(audit_rows(tmp_path / "apart", rows), "P41") == []
