"""The mapping file: closed, told where it is wrong, and never filled in by guessing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.imports import imported, jsonl, parquet, reasons, rows_of

from securebench.errors import ConfigError

SHORT = """\
family: short_answer
id: {template: "q-$number"}
input:
  question: {template: "$text (${meta.topic})"}
  answer_format:
    type: {value: number}
    unit: {column: unit, optional: true}
eval:
  accepted_answers: {columns: [answer, other], as: number, optional: true}
metadata:
  tags: {column: tags, as: list, separator: ";", optional: true}
"""
ROW = {"number": 7, "text": "How far?", "meta": {"topic": "maps"}, "answer": "1,200", "other": "", "tags": "a; b"}


def test_fields_are_taken_from_columns_templates_and_constants(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "jsonl", [ROW, ROW | {"number": 8, "unit": "km", "other": "1200.5"}], mapping=SHORT)
    first, second = rows_of(pack)
    assert first == {
        "id": "q-7",
        "family": "short_answer",
        "input": {"question": "How far? (maps)", "answer_format": {"type": "number"}},
        "eval": {"accepted_answers": [1200]},
        "metadata": {"tags": ["a", "b"]},
    }
    assert second["input"]["answer_format"] == {"type": "number", "unit": "km"}
    assert second["eval"]["accepted_answers"] == [1200, 1200.5]
    assert pack.manifest.source is not None
    assert pack.manifest.source.mapping is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": ""}, "text is missing or empty"),
        ({"meta": {}}, "meta.topic is missing or empty"),
        ({"answer": "many"}, "answer is no number"),
        ({"answer": None}, "eval.accepted_answers: required key is missing"),
    ],
)
def test_row_without_a_value_is_left_out(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    _, report = imported(tmp_path, "jsonl", [ROW, ROW | change], mapping=SHORT)
    assert reasons(report) == [f"2: {reason}"]


CODE = """\
family: code_completion
input:
  prompt: {column: prompt}
  language: {value: python}
  entry_point: {column: name}
eval:
  tests:
    source: {value: cases}
    cases: {column: cases, as: json}
  reference_solution: {column: solution}
"""


def test_fields_within_fields_and_json_in_cells(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        'prompt,name,cases,solution\nAdd.,add,"[{""args"": [1, 2], ""expected"": 3}]","def add(a, b): return a + b"\n'
        "Bad.,add,{,x\n"
    )
    pack, report = imported(tmp_path, "jsonl", tmp_path / "x.csv", mapping=CODE)
    (row,) = rows_of(pack)
    assert row["id"] == "x/2"
    assert row["eval"]["tests"] == {"source": "cases", "cases": [{"args": [1, 2], "expected": 3}]}
    assert reasons(report) == ["3: cases is no JSON"]


def test_parquet_with_lists_and_indexes(tmp_path: Path) -> None:
    mapping = (
        "family: multiple_choice\ninput: {question: {column: q}, choices: {column: options}}\n"
        "eval: {answer: {column: key.0, as: integer}}\n"
    )
    rows = [{"q": "Which?", "options": ["a", "b"], "key": [1]}]
    pack, _ = imported(tmp_path, "jsonl", parquet(tmp_path / "x.parquet", rows), mapping=mapping)
    assert rows_of(pack)[0]["eval"] == {"answer": 1}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("family: short_answer\ninput: {}\n", r"mapping\.yaml:1: eval: required key is missing"),
        (SHORT.replace("short_answer", "short_anser"), r"did you mean 'short_answer'"),
        (SHORT.replace("as: number", "as: float"), r"mapping\.yaml:9: eval\.accepted_answers\.as: expected one of"),
        (SHORT.replace("columns: [answer, other]", "column: a, columns: [b]"), "exactly one of 'column'"),
        (SHORT.replace(', separator: ";"', ""), "belong together"),
        (SHORT + "prompt: x\n", "unknown key 'prompt'"),
        ("family: [", "not YAML"),
    ],
)
def test_mapping_that_is_wrong_is_told(tmp_path: Path, mapping: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        imported(tmp_path, "jsonl", [ROW], mapping=mapping)


def test_mapping_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--mapping FILE"):
        imported(tmp_path, "jsonl", jsonl(tmp_path / "x.jsonl", [ROW]))
