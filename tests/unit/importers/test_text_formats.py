"""Formats whose answers are text: keys in the right lane, nothing guessed, and what cannot be converted told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.imports import imported, jsonl, parquet, reasons, rows_of

from securebench.errors import ConfigError
from securebench.importers.formats.choices import shuffled
from securebench.importers.formats.math import boxed, spellings

GSM = [
    {"question": "Ann has 3 hens and buys 4. How many?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"},
    {"question": "What do 40 cost at $30?", "answer": "40 * 30\n#### 1,200"},
    {"question": "Half of one?", "answer": "#### 0.5"},
    {"question": "No mark", "answer": "seven"},
    {"question": "No number", "answer": "#### seven"},
    {"question": "", "answer": "#### 7"},
    {"answer": "#### 7"},
    {"question": "A third?", "answer": "#### 1/3"},
]


def test_gsm8k(tmp_path: Path) -> None:
    pack, report = imported(tmp_path, "gsm8k", GSM)
    rows = rows_of(pack)
    assert [row["eval"]["accepted_answers"] for row in rows] == [[7], [1200], [0.5], ["1/3"]]
    assert {row["input"]["answer_format"] for row in rows} == {"number"}
    assert rows[0]["eval"]["worked_solution"] == "3 + 4 = <<3+4=7>>7"
    assert rows[0]["id"] == "gsm8k/1"
    assert reasons(report) == [
        "4: answer has no ####",
        "5: answer is no number",
        "6: question is empty",
        "7: question is missing",
    ]


def test_no_reason_repeats_an_answer(tmp_path: Path) -> None:
    _, report = imported(tmp_path, "gsm8k", [*GSM, {"question": "?", "answer": "#### MARKER"}])
    assert "MARKER" not in json.dumps(report.as_json())


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"So it is $\boxed{42}$.", "42"),
        (r"$\boxed{1}$, no: $\boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"\boxed{\text{a {nested} one}}", r"\text{a {nested} one}"),
        (r"\fbox{7}", "7"),
        (r"\boxed 5", "5"),
        (r"\boxed 12$", None),
        (r"\boxed\frac12", None),
        (r"\boxed (2,3)", None),
        (r"\boxed{never closed", None),
        ("no box", None),
    ],
)
def test_last_box_is_the_answer(solution: str, answer: str | None) -> None:
    assert boxed(solution) == answer


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("42", [42]),
        ("1{,}000", [1000]),
        ("-2.50", [-2.5]),
        (r"\dfrac{3}{4}", [r"\frac{3}{4}", "3/4"]),
        (r"-\frac12", [r"-\frac12", "-1/2"]),
        (r"90^\circ", [r"90^\circ", "90"]),
        (r"\$5", [r"\$5", "5"]),
        (r"50\%", [r"50\%", "50"]),
        (r"\text{Evelyn}", [r"\text{Evelyn}", "Evelyn"]),
        (r"\left( 1, 2 \right)", ["( 1, 2 )", "(1,2)"]),
    ],
)
def test_spellings_of_final_answers(answer: str, accepted: list[Any]) -> None:
    assert spellings(answer) == accepted


def test_math(tmp_path: Path) -> None:
    rows = [
        {"problem": "2 + 2", "solution": r"\boxed{4}", "level": "Level 1", "type": "Algebra"},
        {"problem": "A half", "answer": r"\frac{1}{2}", "subject": "Algebra", "unique_id": "test/algebra/1.json"},
        {"problem": "Nothing", "solution": "it is obvious"},
        {"problem": "3 + 3", "answer": 6},
        {"problem": "One half", "answer": r"$\boxed{0.5}$"},
    ]
    pack, report = imported(tmp_path, "math", rows)
    first, second, *others = rows_of(pack)
    assert [row["eval"]["accepted_answers"] for row in others] == [[6], [0.5]]
    assert first["eval"] == {"accepted_answers": [4], "worked_solution": r"\boxed{4}"}
    assert first["metadata"] == {"subject": "Algebra", "level": "Level 1"}
    assert second["id"] == "test/algebra/1.json"
    assert "answer_format" not in first["input"]
    assert "answer_format" not in second["input"]  # which kind of answer it is would be a hint
    assert reasons(report) == ["3: has neither an answer nor a \\boxed{} in its solution"]


def test_math_in_one_file_for_each_problem(tmp_path: Path) -> None:
    for name in ("algebra/1", "geometry/1"):
        (tmp_path / "MATH" / name).parent.mkdir(parents=True)
        problem = {"problem": f"{name}?", "solution": r"\boxed{4}"}
        (tmp_path / "MATH" / f"{name}.json").write_text(json.dumps(problem))
    pack, _ = imported(tmp_path, "math", tmp_path / "MATH")
    assert pack.ids == ("algebra/1", "geometry/1")


def test_math_with_numbers_only(tmp_path: Path) -> None:
    rows = [{"problem": "a", "answer": "4"}, {"problem": "b", "answer": r"\pi"}]
    pack, report = imported(tmp_path, "math", rows, answers="numbers")
    assert len(pack) == 1
    assert report.missing == 1


MMLU_CSV = 'Which is a colour?,stone,green,seven,"a, b",B\nWhich is a number?,stone,green,seven,air,C\n'


def test_mmlu_as_csv_without_names(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/odd_things_test.csv").write_text(MMLU_CSV)
    pack, _ = imported(tmp_path, "mmlu", tmp_path / "data")
    first, second = rows_of(pack)
    assert first["input"] == {"question": "Which is a colour?", "choices": ["stone", "green", "seven", "a, b"]}
    assert (first["eval"], second["eval"]) == ({"answer": 1}, {"answer": 2})
    assert first["id"] == "odd_things/1"
    assert first["metadata"] == {"subject": "odd_things"}


@pytest.mark.parametrize("write", [jsonl, parquet])
def test_mmlu_with_lists_of_options(tmp_path: Path, write: Any) -> None:
    rows = [
        {"question": "Which?", "subject": "odd", "choices": ["a", "b"], "answer": 1},
        {"question": "Twice?", "subject": "odd", "choices": ["a", "a"], "answer": 1},
        {"question": "Outside?", "subject": "odd", "choices": ["a", "b"], "answer": 2},
        {"question": "Alone?", "subject": "odd", "choices": ["a"], "answer": 0},
    ]
    pack, report = imported(tmp_path, "mmlu", write(tmp_path / f"x.{write.__name__}", rows))
    assert [row["eval"] for row in rows_of(pack)] == [{"answer": 1}]
    assert reasons(report) == [
        "2: input.choices: two choices are the same",
        "3: its key names no option",
        "4: has no options",
    ]


def test_rows_like_those_of_mmlu_pro_and_arc(tmp_path: Path) -> None:
    rows = [
        {"question_id": 7, "question": "Q", "options": ["a", "b", "c"], "answer": "C", "answer_index": 2},
        {"id": "x", "question": "Q2", "choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answerKey": "2"},
        {"question": "Q3", "options": ["a", "b", "c"], "answer": "C", "answer_index": 1},
        {"question": "Q4", "options": ["a", "b"], "answer": "b"},
    ]
    pack, report = imported(tmp_path, "mmlu", rows)
    assert [(row["id"], row["eval"]["answer"]) for row in rows_of(pack)] == [("7", 2), ("x", 1)]
    assert reasons(report) == ["3: has two keys that contradict each other", "4: its key names no option"]


NOT_GUESSED = {
    "an option missing before the key": ({"A": "a", "B": "", "C": "c", "D": "d", "answer": "C"}, "empty option"),
    "labels that are numbers, and a position": (
        {"choices": {"text": ["a", "b", "c"], "label": ["1", "2", "3"]}, "answer": 0},
        "names no option",
    ),
    "the same label twice": ({"choices": {"text": ["a", "b"], "label": ["x", "x"]}, "answer": "x"}, "label of its own"),
    "fewer labels than options": ({"choices": {"text": ["a", "b"], "label": ["A"]}, "answer": "A"}, "label of its own"),
    "a letter where labels are others": (
        {"choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answer": "A"},
        "names no option",
    ),
    "a number that is the text of another": ({"choices": ["1", "2", "3", "4"], "answer": "2"}, "text of another"),
    "two keys, one of them text": ({"choices": ["a", "b"], "answer": "A", "answer_index": "1"}, "contradict"),
}


@pytest.mark.parametrize("name", NOT_GUESSED)
def test_keys_that_could_mean_another_option_are_not_guessed(name: str, tmp_path: Path) -> None:
    row, why = NOT_GUESSED[name]
    pack, report = imported(tmp_path, "mmlu", [{"question": "Which?", **row}, MMLU_ROW])
    assert len(pack) == 1
    assert why in reasons(report)[0]


MMLU_ROW = {"question": "Sure?", "choices": {"text": ["a", "b"], "label": ["1", "2"]}, "answer": 1, "answer_index": 0}


def test_labels_are_what_keys_mean(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "mmlu", [MMLU_ROW])
    assert [row["eval"]["answer"] for row in rows_of(pack)] == [0]


@pytest.mark.parametrize(
    "text", ["id,question,A,B,C,answerKey\n1,Which?,a,b,c,B\n", "input,A,B,C,D,target\nWhich?,a,b,c,d,B\n"]
)
def test_names_of_columns_are_no_row(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    pack, report = imported(tmp_path, "mmlu", tmp_path / "x.csv")
    assert [row["input"]["choices"][row["eval"]["answer"]] for row in rows_of(pack)] == ["b"]
    assert report.left_out == []


def test_an_empty_choice_moves_no_letter(tmp_path: Path) -> None:
    rows = [
        {"input": "Which?", "choices": ["", "x", "y"], "target": "B"},
        {"input": "Which?", "choices": "a,,b", "target": "B"},
        {"input": "Which one?", "choices": ["x", "y"], "target": "B"},
    ]
    pack, report = imported(tmp_path, "inspect", rows)
    assert len(pack) == 1
    assert reasons(report) == [f"{n}: choices has an empty entry among others" for n in (1, 2)]


GPQA = (
    "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3,Explanation,Record ID\n"
    + "".join(f"Question {n}?,right {n},wrong {n}a,wrong {n}b,wrong {n}c,because,rec{n}\n" for n in range(40))
    + "Same?,x,x,y,z,because,rec99\n"
)


def test_gpqa_mixes_options_the_same_way_every_time(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(GPQA)
    pack, report = imported(tmp_path, "gpqa", tmp_path / "x.csv")
    rows = rows_of(pack)
    places = [row["eval"]["answer"] for row in rows]
    for number, row in enumerate(rows):
        assert row["input"]["choices"][row["eval"]["answer"]] == f"right {number}"
        assert "because" not in json.dumps(row["input"])
    assert {places.count(place) for place in range(4)} != {0}
    assert set(places) == {0, 1, 2, 3}
    again, _ = imported(tmp_path, "gpqa", tmp_path / "x.csv", target="again")
    assert again.digest == pack.digest
    other, _ = imported(tmp_path, "gpqa", tmp_path / "x.csv", target="other", seed="1")
    assert [row["eval"]["answer"] for row in rows_of(other)] != places
    assert reasons(report) == ["42: two of its answers are the same"]


def test_order_of_options_depends_on_public_text_only() -> None:
    options = ["a", "b", "c", "d"]
    order = [options[index] for index in shuffled(options, "Q", "0")]
    turned = [*options[1:], options[0]]  # as if another one was the right one, which stands first
    assert [turned[index] for index in shuffled(turned, "Q", "0")] == order


def test_simpleqa(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        'metadata,problem,answer\n"{}",In which year?,1998\n"{}",On which day?,5 March 2024\n"{}",Who?,Ann Smith\n'
        '"{}",How many?,"120,000"\n"{}",Empty?,\n'
    )
    pack, report = imported(tmp_path, "simpleqa", tmp_path / "x.csv")
    accepted = [row["eval"]["accepted_answers"] for row in rows_of(pack)]
    assert accepted == [[1998], ["2024-03-05"], ["Ann Smith"], [120000]]
    assert all("answer_format" not in row["input"] for row in rows_of(pack))
    assert reasons(report) == ["6: answer is empty"]


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("1,234.5", 1234.5),
        ("-12", -12),
        ("0.25", 0.25),
        ("02134", "02134"),
        ("007", "007"),
        ("1.10", "1.10"),
        ("+49", "+49"),
        (".5", ".5"),
        ("1e3", "1e3"),
        ("3/4", "3/4"),
        ("50%", "50%"),
    ],
)
def test_answer_that_only_looks_like_a_number_keeps_its_digits(
    tmp_path: Path, answer: str, accepted: int | float | str
) -> None:
    for name, row in (("simpleqa", {"problem": "?", "answer": answer}), ("inspect", {"input": "?", "target": answer})):
        pack, _ = imported(tmp_path, name, [row], target=name)
        assert [one["eval"]["accepted_answers"] for one in rows_of(pack)] == [[accepted]]


def test_target_that_is_a_json_number_is_one(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "inspect", [{"input": "?", "target": target} for target in (4.0, 0.5, 7)])
    assert [one["eval"]["accepted_answers"] for one in rows_of(pack)] == [[4], [0.5], [7]]


INSPECT = [
    {"input": "2 + 2?", "target": "4", "id": "sum"},
    {"input": "Who?", "target": ["Ann", "Ann Smith"]},
    {"input": "Which?", "target": "B", "choices": ["a", "b"]},
    {"input": "Which two?", "target": ["A", "C"], "choices": ["a", "b", "c"]},
    {"input": [{"role": "user", "content": "Hello?"}], "target": "hello"},
    {"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Well?"}], "target": "yes"},
    {"input": "Look", "target": "x", "files": {"a.txt": "b"}},
    {"input": [{"role": "user", "content": [{"type": "image", "image": "x.png"}]}], "target": "x"},
    {"input": "Which?", "target": "Z", "choices": ["a", "b"]},
    {"input": "No key"},
    {"input": [], "target": "x"},
    {"input": [{"role": "assistant", "content": "Hi"}], "target": "x"},
]


def test_inspect(tmp_path: Path) -> None:
    pack, report = imported(tmp_path, "inspect", INSPECT)
    rows = rows_of(pack)
    assert [(row["family"], row["eval"]) for row in rows] == [
        ("short_answer", {"accepted_answers": [4]}),
        ("short_answer", {"accepted_answers": ["Ann", "Ann Smith"]}),
        ("multiple_choice", {"answer": 1}),
        ("multiple_choice", {"answer": [0, 2]}),
        ("short_answer", {"accepted_answers": ["hello"]}),
        ("short_answer", {"accepted_answers": ["yes"]}),
    ]
    assert rows[3]["input"]["multi_select"] is True
    assert rows[5]["input"]["question"] == "System: Be brief.\n\nUser: Well?"
    assert reasons(report) == [
        "7: has `files`: how its result is checked stands in code, not in the data",
        "8: its input holds more than text",
        "9: its target names no option",
        "10: has no target",
        "11: has no input",
        "12: its input holds messages that are no question",
    ]


def test_inspect_as_csv_and_json(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('input,target,choices\nWhich?,B,"a, b"\nWhich?,A,"[""c, d"", ""e""]"\nSum?,4,\n')
    pack, _ = imported(tmp_path, "inspect", tmp_path / "x.csv")
    assert [row["input"].get("choices") for row in rows_of(pack)] == [["a", "b"], ["c, d", "e"], None]
    (tmp_path / "x.json").write_text(json.dumps(INSPECT[:3]))
    pack, _ = imported(tmp_path, "inspect", tmp_path / "x.json", target="two")
    assert len(pack) == 3


def test_source_of_which_nothing_can_be_taken_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none of 1 rows could be converted:\ngsm8k\.jsonl:1: answer is missing"):
        imported(tmp_path, "gsm8k", [{"prompt": "x"}])
    with pytest.raises(ConfigError, match="holds no row"):
        imported(tmp_path, "gsm8k", [], target="empty")
