"""What short answers of every format have in common."""

from __future__ import annotations

from securebench.families.short_answer import ShortAnswerEval, ShortAnswerInput
from securebench.verifiers.short_answer import judge_short_answer


def test_metadata_shows_the_candidates_answer_and_nothing_of_the_key() -> None:
    public = ShortAnswerInput(question="?", answer_format="text")
    private = ShortAnswerEval(accepted_answers=("the-hidden-key",))
    assert judge_short_answer(public, private, "Answer: mine").metadata == {"answer": "mine", "rule": "final_line"}
    long = judge_short_answer(public, private, "y" * 8_000).metadata["answer"]
    assert len(long) == 200
