"""I09, I11, I51 and I52: what was written is read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from securebench.audit.attacks.i_results.changes import (
    EDITS,
    checkpoint_as_seal,
    content_replaced,
    edited,
    forged,
    forged_without_checkpoints,
    json_edited,
    removed,
    rewritten,
    seal_edited,
)
from securebench.audit.plays.record import (
    BENCH,
    Averaged,
    Change,
    Continued,
    JudgedAgain,
    Verified,
    nothing,
)
from securebench.audit.plays.record_strange import OUTSIDE, Handled
from securebench.audit.plays.run import HOSTILE, Attempted, bench
from securebench.audit.plays.run_engine import Bench, question
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.record import AddsUp, Believed, JoinedLines, LastRowWins, SameName, WritesWherever
from securebench.records.keys import SigningKey

_UNTOUCHED, _GOES_ON = Verified(nothing), Continued(nothing)
_AS_IT_WAS = JudgedAgain(nothing, "right")
_HOW = {
    "verdict-edited": "A failed attempt is given a pass.",
    "first-dropped": "The first line is dropped.",
    "one-dropped": "A line in the middle is dropped.",
    "last-dropped": "The last line is dropped.",
    "one-repeated": "A line is repeated.",
    "repeated-at-the-end": "The first line comes once more at the end.",
    "places-changed": "Two lines change places.",
    "one-put-in": "A line of an attempt that was never planned is put in.",
    "unplanned-task": "A well chained line of a task that was never planned is added.",
    "chained-behind-the-seal": "A well chained line of a planned attempt is added behind what was sealed.",
    "cut-in-a-line": "The file is cut in the middle of a line.",
    "cut-to-nothing": "All lines are gone.",
    "answer-replaced": "The answer in a record is another one.",
    "contradiction": "A record that passed says that it did not.",
    "score-beyond-all": "A record has twice the score that there is.",
}
_OTHERS: dict[str, tuple[str, Change]] = {
    "summary-replaced": (
        "The summary says that everything passed.",
        json_edited("summary.json", lambda value: value.update(passed=6, failed=0, score=1.0)),
    ),
    "task-unplanned": (
        "The plan no longer has the task that failed.",
        json_edited("plan.json", lambda plan: plan["tasks"].pop(1)),
    ),
    "seal-removed": ("The seal is gone.", removed("seal.json")),
    "seal-edited": ("The seal counts six passes, under its old signature.", seal_edited),
    "content-replaced": ("A stored candidate has other bytes of the same length.", content_replaced),
    "sealed-again": ("Every verdict is a pass, chained, counted and signed anew with another key.", forged),
    "sealed-again-alone": (
        "The same, and everything that was signed before is gone.",
        forged_without_checkpoints,
    ),
    "checkpoint-as-seal": (
        "What was signed at the interruption stands in the place of the seal, and the lines behind it are gone.",
        checkpoint_as_seal,
    ),
}


def _verified() -> list[Attack]:
    changes = {name: (_HOW[name], edited("candidates.jsonl", edit)) for name, edit in EDITS.items()}
    return [
        Attack("I09", name, how, Verified(change), _UNTOUCHED, Believed(change), isolated=False)
        for name, (how, change) in (changes | _OTHERS).items()
    ]


_POISON = {"verdict-edited", "one-dropped", "one-repeated", "unplanned-task", "cut-to-nothing", "answer-replaced"}


def _continued() -> list[Attack]:
    made = []
    for name in sorted(_POISON):
        edit = EDITS[name] if name != "one-dropped" else EDITS["first-dropped"]
        change = edited("candidates.jsonl", edit)
        how = f"In a run that was interrupted, before it goes on. {_HOW[name]}"
        made.append(
            Attack("I09", f"resume-{name}", how, Continued(change), _GOES_ON, Believed(change, True), isolated=False)
        )
    return made


_ROW = json.dumps({"task_id": HOSTILE, "attempt": 1, "passed": True, "score": 1.0, "verification_status": "passed"})
_LINES = f"""
import sys
for end in ("\\n", "\\r\\n", "\\r", "\\u2028", "\\u2029", "\\u0085", "\\x0b", "\\x0c", "\\x1e", "\\x00"):
    for stream in (sys.stdout, sys.stderr):
        stream.write(end + {_ROW!r} + end + '"}}' + end)
"""

# Terms of the run, as further sections of its tester file, or as another bench.
_TERMS: dict[str, tuple[str, Bench]] = {
    "more-memory": ("With a larger memory limit.", replace(BENCH, more='{"sandbox": {"memory": "3gb"}}')),
    "more-attempts": ("With more attempts at each task.", replace(BENCH, attempts=5)),
    "task-left-out": ("Without the task that fails.", replace(BENCH, rows=(BENCH.rows[0], BENCH.rows[2]))),
    "task-made-easier": (
        "With another answer accepted for the task that fails.",
        replace(BENCH, rows=(BENCH.rows[0], BENCH.rows[1].replace("42", "41"), BENCH.rows[2])),
    ),
    "other-agent": ("With another agent.", replace(BENCH, agent=BENCH.agent + "# better\n")),
    "budget": ("With a budget where there was none.", replace(BENCH, more='{"budget": {"usd": 5}}')),
}
_SEALED_TERMS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "limit-in-the-plan": ("The sealed plan says another memory limit.", lambda plan: plan["limits"].update(memory=1)),
    "attempts-in-the-plan": ("The sealed plan says one attempt at each task.", lambda plan: plan.update(attempts=1)),
    "audit-in-the-plan": ("The sealed plan says that the walls were audited.", lambda plan: plan.update(audit={})),
}


def _terms() -> list[Attack]:
    made = []
    for name, (how, terms) in _TERMS.items():
        told = f"A run that was interrupted is continued under other terms. {how}"
        attempt, control, reason = Continued(nothing, terms), SameName(terms), frozenset({"ConfigError"})
        made.append(Attack("I11", name, told, attempt, _GOES_ON, control, reason, isolated=False))
    for name, (how, edit) in _SEALED_TERMS.items():
        change = json_edited("plan.json", edit)
        made.append(Attack("I11", name, how, Verified(change), _UNTOUCHED, Believed(change), isolated=False))
    return made


def _strange(name: str, kind: str) -> Change:
    def change(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
        outside = run.parents[1] / OUTSIDE
        if kind == "link":
            outside.write_bytes(b"a file of the operator's, without a line end")
        (run / name).unlink(missing_ok=True)
        if kind == "fifo":
            os.mkfifo(run / name)
        else:
            (run / name).symlink_to(outside)

    return change


_STRANGE = {
    "records-elsewhere": ("candidates.jsonl", "link", "The records are a link to a file of the operator's."),
    "journal-elsewhere": ("events.jsonl", "link", "The journal is a link to a file of the operator's."),
    "lock-elsewhere": (".lock", "nowhere", "The lock is a link to a file that does not exist yet."),
    "summary-elsewhere": (".summary.json.new", "link", "The name that a new summary is written under first is a link."),
    "seal-elsewhere": (".seal.json.new", "link", "The name that a new seal is written under first is a link."),
    "checkpoints-elsewhere": ("checkpoints.jsonl", "nowhere", "The checkpoints are a link to a file to be made."),
    "seal-that-waits": ("seal.json", "fifo", "The seal is a FIFO that nobody writes to."),
    "journal-that-waits": ("events.jsonl", "fifo", "The journal is a FIFO that nobody writes to."),
    "plan-that-waits": ("plan.json", "fifo", "The plan is a FIFO that nobody writes to."),
    "seed-that-waits": (".seed", "fifo", "The kept seed is a FIFO that nobody writes to."),
}
_HUGE = 10**3000


def _first(**changes: Any) -> Change:
    return edited("candidates.jsonl", lambda lines: [rewritten(lines[0], changes), *lines[1:]])


_NUMBERS: dict[str, tuple[str, Change]] = {
    "cost": ("A record cost more than any floating-point number.", _first(usage={"models": {"cost_usd": _HUGE}})),
    "seconds": (
        "A record took more seconds than any floating-point number.",
        _first(timings={"produce_seconds": _HUGE, "verify_seconds": 0.5}),
    ),
    "starts": ("A record lost more starts than any floating-point number.", _first(lost_starts=_HUGE)),
    "summary": (
        "The summary counts more passes than any floating-point number.",
        json_edited("summary.json", lambda value: value.update(passed=_HUGE, score_sum=-_HUGE)),
    ),
}


def _read_again() -> list[Attack]:
    made = []
    for name, (file, kind, how) in _STRANGE.items():
        change = _strange(file, kind)
        weak = WritesWherever(file, change)
        made.append(Attack("I51", name, how, Handled(change), _GOES_ON, weak, isolated=False))
    for name, (how, change) in _NUMBERS.items():
        attempt = Handled(change, sealed=True)
        made.append(Attack("I52", name, how, attempt, _UNTOUCHED, AddsUp(change), isolated=False))
    return made


ATTACKS = (
    *_verified(),
    *_continued(),
    Attack(
        "I09",
        "rolled-back",
        "Everything is as it was sealed at the interruption, before the attempts that came after it.",
        Verified(nothing, rolled_back=True),
        _UNTOUCHED,
        Believed(nothing, rolled_back=True),
        isolated=False,
    ),
    Attack(
        "I09",
        "regrade-content-replaced",
        "A stored candidate that failed is given the right bytes, so that it passes when it is judged again.",
        JudgedAgain(content_replaced),
        _AS_IT_WAS,
        Believed(content_replaced),
        isolated=False,
    ),
    Attack(
        "I09",
        "lines-in-an-answer",
        "The agent prints line ends of every kind and, between them, records of a pass.",
        Attempted(bench(question(HOSTILE), _LINES)),
        Attempted(bench(question(HOSTILE), "print('Answer: 42')")),
        JoinedLines(f'"}}\n{_ROW}\n{{"x": "'),
    ),
    *_terms(),
    Attack(
        "I11",
        "best-of-two",
        "Of two attempts at each task only the last is right, and the better one is to be counted.",
        Averaged(),
        Averaged(best=0.5),
        LastRowWins(),
        isolated=False,
    ),
    *_read_again(),
)
