"""What the attempts of a synthetic run hold: candidates, tests, controls and transcripts, made up from chance."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from securebench.harnesses.trajectory import Metrics, Step, ToolCall, Trajectory

Record = dict[str, Any]
_WORDS = ("value", "total", "index", "buffer", "node", "path", "result", "cache", "table", "window", "offset", "token")


@dataclass(frozen=True, slots=True)
class Family:
    """How tasks of one family come out: the share that is solved, how verdicts are reached, why others fail."""

    name: str
    skill: float
    assurance: str
    reasons: tuple[str, ...]


FAMILIES = (
    Family("code_completion", 0.72, "isolated", ("wrong_answer", "wrong_answer", "worker_timeout", "no_candidate")),
    Family("short_answer", 0.61, "pure", ("wrong_answer", "malformed_answer", "no_answer")),
    Family("repo_patch", 0.38, "shared_process", (*["tests_failed"] * 14, *["producer_timeout"] * 5, "tampering")),
    Family("multiple_choice", 0.83, "pure", ("wrong_answer", "ambiguous_answer")),
)


def verified(family: Family, passed: bool, chance: random.Random) -> Record:
    if family.assurance == "pure":
        return {"rule": "final_line"}
    count = chance.randrange(3, 9)
    failed = 0 if passed else chance.randrange(1, count + 1)
    outcomes = ["failed"] * failed + ["passed"] * (count - failed)
    chance.shuffle(outcomes)
    if family.assurance == "shared_process":
        return {"rule": "suite", "tests": {"fail_to_pass": outcomes[:2], "pass_to_pass": outcomes[2:], "count": count}}
    return {
        "rule": "every test passed" if passed else "a test did not pass",
        "runner": "pytest",
        "tests": {"planned": count, "passed": count - failed},
        "outcomes": [
            {"test": n, "outcome": outcome, "why": "", "seconds": round(chance.random() / 50, 4)}
            for n, outcome in enumerate(outcomes)
        ],
    }


def controls(family: Family, reason: str | None) -> list[Record]:
    if family.assurance != "shared_process":
        return []
    caught = reason == "tampering"
    return [
        {"name": "canary", "held": True, "detail": "2 tests that must fail were seen as failed"},
        {"name": "twins", "held": not caught, "detail": f"4 decoys looked at, {2 * caught} did not fail"},
    ]


def candidate(task_id: str, family: str, lines: int, chance: random.Random) -> str:
    if family in {"short_answer", "multiple_choice"}:
        return f"{prose(chance, 30)}\nAnswer: {chance.choice('ABCD')}{chance.randrange(99)}\n"
    body = [f"    {_line(chance)}" for _ in range(lines)]
    if family == "repo_patch":
        head = "diff --git a/src/core.py b/src/core.py\n--- a/src/core.py\n+++ b/src/core.py\n@@ -10,4 +10,12 @@\n"
        changed = [f"{'-' if n < 3 else '+' if n % 3 else ' '}{line}" for n, line in enumerate(body)]
        return head + "\n".join(changed) + "\n"
    return f"def solve(values):  # {task_id}\n" + "\n".join(body) + "\n    return total\n"


def _line(chance: random.Random) -> str:
    one, other = chance.choice(_WORDS), chance.choice(_WORDS)
    return f"{one} = {other}[{chance.randrange(999)}] + len({chance.choice(_WORDS)}) * {chance.randrange(10**6)}"


def prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(chance.randrange(3, words))).capitalize() + "."


def transcript(task_id: str, attempt: int, record: Record, chance: random.Random) -> bytes:
    steps = [Step("user", f"Solve {task_id}. {prose(chance, 60)}")]
    for number in range(chance.randrange(2, 8)):
        call = ToolCall(
            f"call-{number}", "shell", {"command": f"grep -rn {chance.choice(_WORDS)} src/"}, prose(chance, 80)
        )
        steps.append(Step("agent", prose(chance, 50), prose(chance, 40), [call], Metrics(900, 120, 300, 0.004)))
    steps.append(Step("agent", record["candidate_text"] or record["candidate_patch"] or "I give up."))
    total = Metrics(4000, 800, 1200, record["cost"])
    return Trajectory(f"{task_id}#{attempt}", "chat", "1", "example-large", steps, total).encode()
