"""The table a person reads: the numbers, how sure they are, and what must be known besides."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from securebench.cli._summary import amount, duration, notes, print_summary, score_text, summary_table
from securebench.records import summary as module


def a_summary(**more: Any) -> module.TesterRunSummary:
    fields: dict[str, Any] = {
        "run_id": "r", "output_dir": "out", "output_path": "out/candidates.jsonl", "benchmark_id": "b", "harness": "h",
        "planned": 164, "total": 164, "verified": 164, "passed": 103, "failed": 61, "pending": 0, "errors": 0,
        "score_sum": 103.0, "verification_status": "complete",
        "interval": {"low": 0.55194, "high": 0.6983, "confidence": 0.95}, "assurance": {"isolated": 164},
    }  # fmt: skip
    return module.TesterRunSummary(**fields | more)


def rendered(*rows: tuple[str, module.TesterRunSummary], width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(summary_table(rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_score_stands_with_its_interval() -> None:
    assert score_text(a_summary()) == "62.8 % [55.2, 69.8]"
    table = rendered(("my run", a_summary(wall_seconds=754.2)))
    assert "62.8 % [55.2, 69.8]" in table
    assert "103/164" in table
    assert "12 min 34 s" in table


def test_columns_of_zeros_are_left_out_and_others_are_not() -> None:
    assert "errors" not in rendered(("r", a_summary()))
    mixed = rendered(("r", a_summary()), ("s", a_summary(errors=7)))
    assert "errors" in mixed
    assert "pending" not in mixed
    assert " 7 " in mixed


def test_nothing_judged_has_no_score() -> None:
    assert score_text(a_summary(verified=0, passed=0, interval=None)) == "–"


@pytest.mark.parametrize("width", [72, 80, 200])
def test_long_name_does_not_push_the_numbers_off_the_screen(width: int) -> None:
    table = rendered(("n" * 300, a_summary()), width=width)
    assert "62.8 % [55.2, 69.8]" in table
    assert all(len(line) <= width for line in table.splitlines())


def test_notes_say_what_was_left_out_and_what_went_wrong() -> None:
    text = "\n".join(
        notes(
            a_summary(
                interrupted=True,
                filtered="20 of 164 tasks (limit 20)",
                errors=2,
                retries=3,
                lost_starts=1,
                attempts=4,
                pass_at_k={"1": 0.5, "2": 0.6, "3": 0.7, "4": 0.75},
                mean_task_variance=0.125,
                usage={"requests": 9, "input_tokens": 12_345, "cached_tokens": 2_000_000, "output_tokens": 17},
                cost_usd=1.5,
                cost_unknown=2,
                failure_reasons={"wrong_answer": 61},
            )
        )
    )
    for words in (
        "Filtered: 20 of 164 tasks (limit 20).",
        "Attempts: 4 per task. pass@1 50.0 %, pass@2 60.0 %, pass@4 75.0 %, variance within tasks 0.125.",
        "Models: 9 requests, 12.3 k tokens in (2.0 M cached), 17 out, 1.50 USD; the price of 2 attempts is not known.",
        "Retries: 3 times",
        "Lost: 1 agents",
        "wrong_answer 61",
        "Interrupted: 164 of 164",
    ):
        assert words in text


def test_ordinary_run_needs_few_words() -> None:
    assert notes(a_summary()) == ["Verification: complete. Records: out/candidates.jsonl"]


@pytest.mark.parametrize(
    "number, text", [(0, "0"), (999, "999"), (1000, "1.0 k"), (999_999, "1.0 M"), (4_560_000, "4.6 M")]
)
def test_amounts_are_short(number: int, text: str) -> None:
    assert amount(number) == text


@pytest.mark.parametrize("seconds, text", [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (12_000, "3 h 20 min")])
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_file_gets_whole_names_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(a_summary(run_id="n" * 120, output_path="p/" * 80), as_json=False)
    printed = capsys.readouterr().out
    assert "n" * 120 in printed
    assert "p/" * 80 in printed
