"""What short answers of every format have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.verifiers import naive_graders as naive
from tests.unit.verifiers.short_rows import PASS, judge

from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.short_answer import judge_short_answer


@pytest.mark.parametrize(
    "grader, response, right, answer_format",
    [
        (naive.substring, "red green blue", "green", "text"),
        (naive.substring, "not green", "green", "text"),
        (naive.punctuation_stripped, "15", "1.5", "number"),
        (naive.punctuation_stripped, "5", "-5", "number"),
        (naive.punctuation_stripped, "15", "1.5", "text"),
        (naive.punctuation_stripped, "5", "-5", "text"),
        (naive.punctuation_stripped, "C", "C++", "text"),
        (naive.punctuation_stripped, "1 5", "15", "text"),
        (naive.case_folded, "5 MW", "5 mW", "text"),
        (naive.fail_if_far, "nan", "3.14", "number"),
        (naive.evaluated, "__import__('os').getpid() and 5", "5", "number"),
        (naive.evaluated, "type('X', (), {'__eq__': lambda s, o: True})()", "5", "number"),
        (naive.first_number, "5 or 6 or 7", "5", "number"),
        (naive.compatibility_folded, "\uff15", "5", "number"),
        (naive.compatibility_folded, "gre\u200ben", "green", "text"),
    ],
)
def test_attack_fools_a_naive_grader_and_not_this_one(
    grader: naive.Grader, response: str, right: str, answer_format: str
) -> None:
    assert grader(response, right)
    assert judge(response, [right], answer_format) is not PASS


def test_payload_that_a_naive_grader_executes_stays_text(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    payload = f"open({str(marker)!r}, 'w').close() or 5"
    for answer_format in ("number", "text", "set", "date"):
        judge(payload, ["2024"], answer_format)
    assert not marker.exists()
    assert naive.evaluated(payload, "5")
    assert marker.exists()


def test_metadata_shows_the_candidates_answer_and_nothing_of_the_key() -> None:
    public = ShortAnswerInput(question="?", answer_format="text")
    private = ShortAnswerEval(accepted_answers=("the-hidden-key",))
    assert judge_short_answer(public, private, "Answer: mine").metadata == {"answer": "mine", "rule": "final_line"}
    long = judge_short_answer(public, private, "y" * 8_000).metadata["answer"]
    assert len(long) == 200
