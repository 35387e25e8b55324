"""Prompts: the same question in other words, with examples that are never of the rows themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.imports import imported, jsonl, reasons, rows_of

from securebench.cli import app
from securebench.errors import ConfigError
from securebench.importers.prompts import Prompt, load_prompt, own_prompt, variants
from securebench.importers.record_format import RecordFormat
from securebench.importers.registry import FORMATS

ROWS = [{"question": f"What is {n} + 1?", "answer": f"{n} and 1\n#### {n + 1}"} for n in range(3)]
TRAIN = [{"question": f"What is {n} + 2?", "answer": f"{n} and 2\n#### {n + 2}"} for n in range(10, 14)]


@pytest.mark.parametrize("name", FORMATS)
def test_every_template_is_sound(name: str) -> None:
    chosen = FORMATS[name]
    found = variants(name, chosen.family)
    assert "default" in found
    for variant, prompt in found.items():
        assert prompt.variant == variant
        prompt.check(chosen.words if isinstance(chosen, RecordFormat) else prompt.words)
    for text in (FORMATS[name].about, *(setting.about for setting in chosen.settings.values())):
        assert "\n" not in text


@pytest.mark.parametrize(("name", "worked"), [("gsm8k", True), ("simpleqa", False), ("inspect", False)])
def test_prompts_that_show_solutions_are_of_formats_that_have_them(name: str, worked: bool) -> None:
    found = variants(name, FORMATS[name].family)
    assert ("few-shot-cot" in found, "few-shot" in found) == (worked, True)


def test_default_is_the_question_itself(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "gsm8k", ROWS)
    assert [row["input"]["question"] for row in rows_of(pack)] == [row["question"] for row in ROWS]


def test_chain_of_thought_asks_for_reasoning_and_changes_nothing_else(tmp_path: Path) -> None:
    plain, _ = imported(tmp_path, "gsm8k", ROWS)
    pack, _ = imported(tmp_path, "gsm8k", tmp_path / "gsm8k.jsonl", prompt="cot", target="cot")
    for before, after in zip(rows_of(plain), rows_of(pack), strict=True):
        assert after["input"].pop("question").startswith(before["input"].pop("question") + "\n\nThink step by step")
        assert after == before
    assert pack.manifest.source is not None
    assert pack.manifest.source.prompt == "cot"


def test_few_shot_shows_the_first_rows_of_another_source(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", TRAIN)
    pack, _ = imported(tmp_path, "gsm8k", ROWS, prompt="few-shot", examples=train, shots=2)
    question = rows_of(pack)[0]["input"]["question"]
    assert "Question: What is 10 + 2?\nAnswer: 12\n\nQuestion: What is 11 + 2?\nAnswer: 13" in question
    assert "12 + 2" not in question
    assert "10 and 2" not in question
    assert question.endswith("What is 0 + 1?")
    note = pack.manifest.source
    assert note is not None
    assert note.shots == 2
    assert note.examples is not None


def test_few_shot_with_worked_examples(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", TRAIN)
    pack, _ = imported(tmp_path, "gsm8k", ROWS, prompt="few-shot-cot", examples=train, shots=1)
    assert "Solution: 10 and 2\nAnswer: 12" in rows_of(pack)[0]["input"]["question"]


def test_row_that_is_an_example_is_left_out(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", [ROWS[1], *TRAIN])
    pack, report = imported(tmp_path, "gsm8k", ROWS, prompt="few-shot", examples=train, shots=2)
    assert len(pack) == 2
    assert reasons(report) == ["2: is one of the examples that prompts show"]


@pytest.mark.parametrize(
    "spelt",
    [
        "what is 1 + 1?",
        "  What  is\n1 + 1? ",
        "What is 1\u00a0+ 1",
        "What is 1 + 1 ?",
        "What is \uff11 \uff0b 1\uff1f",
        "What\u200b is 1 + 1\u2060?",
    ],
)
@pytest.mark.parametrize("here", [True, False])
def test_row_that_is_an_example_in_another_spelling_is_left_out(tmp_path: Path, spelt: str, here: bool) -> None:
    other = ROWS[1] | {"question": spelt}
    train = jsonl(tmp_path / "train.jsonl", [ROWS[1] if here else other, *TRAIN])
    rows = [ROWS[0], other if here else ROWS[1], ROWS[2]]
    pack, report = imported(tmp_path, "gsm8k", rows, prompt="few-shot", examples=train, shots=2)
    assert len(pack) == 2
    assert reasons(report) == ["2: is one of the examples that prompts show"]


def test_row_that_asks_something_else_than_the_examples_stays(tmp_path: Path) -> None:
    rows = [ROWS[0] | {"question": question} for question in ("What is 1 - 1?", "What is 1.1?", "???")]
    train = jsonl(tmp_path / "train.jsonl", [ROWS[1], ROWS[0] | {"question": "What is 11?"}, *TRAIN])
    pack, _ = imported(tmp_path, "gsm8k", rows, prompt="few-shot", examples=train, shots=2)
    assert len(pack) == 3


def test_examples_of_the_same_source_are_refused(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", ROWS)
    with pytest.raises(ConfigError, match="would show its answers"):
        imported(tmp_path, "gsm8k", source, prompt="few-shot", examples=source)


def test_examples_are_of_the_same_subject(tmp_path: Path) -> None:
    def row(subject: str, number: int) -> dict[str, Any]:
        return {"question": f"{subject} {number}?", "choices": ["yes", "no"], "answer": number % 2, "subject": subject}

    dev = jsonl(tmp_path / "dev.jsonl", [row(subject, n) for n in range(2) for subject in ("law", "art")])
    rows = [row("law", 7), row("art", 8), row("sea", 9)]
    pack, report = imported(tmp_path, "mmlu", rows, prompt="few-shot", examples=dev, shots=2)
    first, second = (row["input"]["question"] for row in rows_of(pack))
    assert "Question: law 0?\nA) yes\nB) no\nAnswer: A" in first
    assert "art" not in first
    assert first.startswith("Questions about law")
    assert "law" not in second
    assert reasons(report) == ["3: has fewer than 2 examples of its subject"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "few-shot"}, "name their source with --examples"),
        ({"prompt": "few-shoot"}, r"no prompt 'few-shoot' \(did you mean 'few-shot'\?\)"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        imported(tmp_path, "gsm8k", ROWS, **options)


def test_worked_examples_need_solutions(tmp_path: Path) -> None:
    train = jsonl(tmp_path / "train.jsonl", [{"question": "1?", "answer": "#### 1"}])
    with pytest.raises(ConfigError, match="no worked solution"):
        imported(tmp_path, "gsm8k", ROWS, prompt="few-shot-cot", examples=train, shots=1)


MIXED = [
    {"input": "Who?", "target": "Ann"},
    {"input": "Which?", "target": "B", "choices": ["x", "y"]},
]
MIXED_TRAIN = [
    {"input": f"Who {n}?", "target": "Bob"} if n % 2 else {"input": f"Which {n}?", "target": "A", "choices": ["p", "q"]}
    for n in range(6)
]


@pytest.mark.parametrize("own", [None, "$examples\n\n$question"])
def test_rows_of_any_family_are_shown_examples_of_their_own(tmp_path: Path, own: str | None) -> None:
    train = jsonl(tmp_path / "train.jsonl", MIXED_TRAIN)
    prompt = "few-shot"
    if own is not None:
        (tmp_path / "own.md").write_text(own)
        prompt = str(tmp_path / "own.md")
    command = ["import", "inspect", str(jsonl(tmp_path / "rows.jsonl", MIXED)), "-o", str(tmp_path / "pack")]
    options = ["--prompt", prompt, "--examples", str(train), "--shots", "2"]
    done = CliRunner().invoke(app, [*command, *options], standalone_mode=False)
    assert done.exception is None, done.exception
    texts = [json.loads(line) for line in (tmp_path / "pack" / "tasks.jsonl").read_text().splitlines()]
    first, second = (row["input"]["question"] for row in texts)
    assert "Question: Who 1?\nAnswer: Bob\n\nQuestion: Who 3?\nAnswer: Bob" in first
    assert "Which" not in first
    assert "Question: Which 0?\nA) p\nB) q\nAnswer: A" in second
    assert "Who" not in second


def test_rows_of_any_family_ask_for_reasoning_in_the_words_of_their_own(tmp_path: Path) -> None:
    pack, _ = imported(tmp_path, "inspect", MIXED, prompt="cot")
    first, second = (row["input"]["question"] for row in rows_of(pack))
    assert first.endswith("Give the final answer at the very end.")
    assert second.endswith("Give the letter at the very end.")


def mapped(family: str, **fields: str) -> str:
    private = fields.pop("eval", "accepted_answers: {columns: [a]}")
    return f"family: {family}\ninput:\n  {fields.get('input', 'question')}: {{column: q}}\neval:\n  {private}\n"


def test_mapped_table_has_the_prompts_of_its_family(tmp_path: Path) -> None:
    rows = [{"q": "1?", "a": "one"}, {"q": "2?", "a": "two"}]
    train = jsonl(tmp_path / "train.jsonl", [{"q": f"{n}0?", "a": "many"} for n in range(3)])
    options: dict[str, Any] = {"mapping": mapped("short_answer"), "examples": train, "shots": 1}
    pack, _ = imported(tmp_path, "jsonl", rows, prompt="few-shot", **options)
    assert "Question: 00?\nAnswer: many" in rows_of(pack)[0]["input"]["question"]


@pytest.mark.parametrize(
    ("mapping", "prompt", "message"),
    [
        (mapped("free_response", eval="rubric: {value: []}"), "cot", "rows of free_response have no prompt cot"),
        (mapped("free_response", eval="rubric: {value: []}"), "few-shot", "rows of free_response have no few-shot"),
        (mapped("short_answer", eval="x: {column: a}"), "few-shot", "has no answer that could be shown"),
        (mapped("short_answer", input="asked"), "few-shot", "an example has nothing that a prompt could ask"),
        (mapped("short_answer", input="asked"), "cot", "has nothing that a prompt could ask"),
    ],
)
def test_mapped_table_that_a_prompt_is_not_for_is_told(tmp_path: Path, mapping: str, prompt: str, message: str) -> None:
    train = jsonl(tmp_path / "train.jsonl", [{"q": f"{n}0?", "a": "many"} for n in range(3)])
    examples = train if prompt == "few-shot" else None
    with pytest.raises(ConfigError, match=message):
        imported(tmp_path, "jsonl", [{"q": "1?", "a": "one"}], prompt=prompt, mapping=mapping, examples=examples)


def test_templates_of_the_operator(tmp_path: Path) -> None:
    prompt = own_prompt(b"Please: $question\n", "mine.md")
    assert prompt.render(question="why?") == "Please: why?"
    assert prompt.variant.startswith("sha256:")
    for template, message in (
        (b"no question", r"needs the placeholder \$question"),
        (b"$question $more", r"unknown placeholder \$more"),
        (b"$question costs $5", r"written \$\$"),
    ):
        with pytest.raises(ConfigError, match=f"^mine.md: .*{message}"):
            own_prompt(template, "mine.md").check(())
    with pytest.raises(ConfigError, match="not UTF-8"):
        own_prompt(b"\xff", "mine.md")


def test_dollar_signs_of_questions_stay() -> None:
    assert Prompt(template="$question!").render(question="$5 or $x?") == "$5 or $x?!"


def test_mbpp_shows_one_test_all_or_none() -> None:
    words = {"question": "Q", "entry_point": "f", "example": "assert 1", "tests": "assert 1\nassert 2"}
    words["signature"] = "def f(x):"
    shown = {name: load_prompt("mbpp", name).render(**words) for name in ("default", "all-tests", "no-tests")}
    assert "assert 1" in shown["default"]
    assert "assert 2" not in shown["default"]
    assert "assert 2" in shown["all-tests"]
    assert "assert" not in shown["no-tests"]
