"""From what a checker's run showed to what it means. Pure; success is one explicit path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.verifiers.checkers.hall import Seen
from securebench.verifiers.suites.observations import read_report

KEPT = 20_000


@dataclass(frozen=True, slots=True)
class CheckerVerdict:
    """Whether the checker was satisfied, and how each of its tests came out, by number."""

    passed: bool
    note: str
    outcomes: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""


def judge_checker(source: str, seen: Seen, must_reward: bool = False) -> CheckerVerdict:
    """It passes only if

    1. the checker came to its own end with exit code 0,
    2. where pytest ran, it reported its end, at least one test, and every test as passed; a checker of source pytest
       must have run it,
    3. where the checker wrote a reward, as text or as JSON, it is 1; with `must_reward` it wrote one.
    """
    end = seen.end
    if end is None:
        return CheckerVerdict(False, f"the checker {seen.why}")
    stdout, stderr = _text(end.get("stdout")), _text(end.get("stderr"))
    outcomes: tuple[str, ...] = ()
    ran = end.get("report") is not None
    problem = None if end.get("exit") == 0 else f"the checker ended with exit code {end.get('exit')}"
    if ran:
        reports = [read_report(part) for part in _runs(end["report"])]
        outcomes = tuple(outcome for report in reports for outcome in report.outcomes.values())
        if not all(report.ended for report in reports) or not outcomes:
            problem = problem or "pytest ran no test, or did not come to its end"
        elif set(outcomes) != {"passed"}:
            problem = f"{sum(o != 'passed' for o in outcomes)} of {len(outcomes)} tests did not pass"
    elif source == "pytest":
        problem = problem or "the checker never ran pytest"
    problem = problem or _fault_in_reward(end.get("reward"), end.get("rewards"), must_reward)
    return CheckerVerdict(problem is None, problem or "", outcomes, stdout, stderr)


def _runs(report: bytes) -> list[bytes]:
    """One part for each run of pytest, each with its end."""
    parts: list[bytes] = [b""]
    for line in report.splitlines(keepends=True):
        parts[-1] += line
        if b'"event": "end"' in line:
            parts.append(b"")
    return [part for part in parts if part]


def _fault_in_reward(text: Any, document: Any, must_reward: bool) -> str | None:
    if text is None and document is None:
        return "the checker wrote no reward" if must_reward else None
    if (text is not None and not _is_one(text)) or (document is not None and not _says_one(document)):
        return "the checker wrote a reward that is not 1"
    return None


def _is_one(reward: Any) -> bool:
    return isinstance(reward, bytes) and reward.strip() in {b"1", b"1.0"}


def _says_one(document: Any) -> bool:
    """Of several rewards the one of that name counts; without it, all do."""
    try:
        value = _json.loads(document)
    except (_json.JsonError, TypeError):
        return False
    rewards = value if isinstance(value, dict) else {}
    counted = [rewards["reward"]] if "reward" in rewards else list(rewards.values())
    return bool(counted) and all(isinstance(one, int | float) and one == 1 for one in counted)


def _text(data: Any) -> str:
    return data.decode("utf-8", "replace")[-KEPT:] if isinstance(data, bytes) else ""
