"""HumanEval and MBPP through the two rooms, where their data lies beside the repository.

Every reference solution of HumanEval passes, and of MBPP a fixed sample with the rows known to be hard; the same tasks
with thirty cheating candidates score nothing. The whole of MBPP takes `SECUREBENCH_ALL_OF_MBPP=1`."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.rooms.judging import Trial, verdicts

from securebench.audit.attacks import g_forging
from securebench.audit.attacks.g_forging.tasks import SQUARES
from securebench.audit.plays.code import Completes
from securebench.verifiers.base import Status

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HARD = {126, 367, 927, 229, 474, 595, 737, 756, 794, 806}  # shadowed builtins, trees of nodes, types, maps, patterns
SAMPLED = ["HumanEval/0", "HumanEval/38"]

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the public data sets are not at {DATA}")


def human_eval() -> Iterator[tuple[str, Trial]]:
    with gzip.open(DATA / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            source = row["prompt"] + row["canonical_solution"]
            yield row["task_id"], Trial(source, row["test"], row["entry_point"], prompt=row["prompt"])


def mbpp() -> Iterator[tuple[int, Trial]]:
    for row in map(json.loads, (DATA / "mbpp.jsonl").read_text(encoding="utf-8").splitlines()):
        tests = row["test_setup_code"] + "\n" + "\n".join(row["test_list"])
        yield row["task_id"], Trial(row["code"], tests, entry_point(row["code"], row["test_list"]), prompt=row["text"])


def entry_point(code: str, tests: list[str]) -> str | None:
    """The first function that the tests call and the solution defines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the escapes in its patterns
        tree = ast.parse(code)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    calls = (node.func for test in tests for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Call))
    return next((call.id for call in calls if isinstance(call, ast.Name) and call.id in defined), None)


def not_passed(trials: dict[str, Trial]) -> dict[str, object]:
    return {
        name: (result.failure_reason, dict(result.metadata))
        for name, result in verdicts(trials).items()
        if not result.passed
    }


def test_every_reference_solution_of_human_eval_passes() -> None:
    trials = dict(human_eval())
    assert len(trials) == 164
    assert not_passed(trials) == {}


def test_reference_solutions_of_mbpp_pass() -> None:
    everything = "SECUREBENCH_ALL_OF_MBPP" in os.environ
    trials = {f"MBPP/{number}": trial for number, trial in mbpp() if everything or number % 10 == 0 or number in HARD}
    assert len(trials) == 974 if everything else len(trials) >= 100
    assert not_passed(trials) == {}


def cheats_for(entry: str) -> dict[str, str]:
    """Thirty candidates that solve nothing, under the name the task asks for and with any arguments."""
    plays = {attack.id: attack.attack for attack in g_forging.ATTACKS if "thread" not in attack.name}
    plain = {
        name: play.source for name, play in plays.items() if isinstance(play, Completes) and play.task == SQUARES.task
    }
    named = {
        name: re.sub(r"\bsq\(xs\):", f"{entry}(xs=None, *more, **named):", source) for name, source in plain.items()
    }
    return dict(list(named.items())[:30])


def test_cheats_score_nothing_on_them() -> None:
    tasks = {name: trial for name, trial in human_eval() if name in SAMPLED}
    tasks |= {f"MBPP/{number}": trial for number, trial in mbpp() if number in (126, 367)}
    trials = {}
    for task, trial in tasks.items():
        assert trial.entry is not None
        cheats = cheats_for(trial.entry)
        assert len(cheats) == 30
        trials |= {
            f"{task}: {name}": Trial(source, trial.tests, trial.entry, trial.prompt) for name, source in cheats.items()
        }
    scored = {name: result.status for name, result in verdicts(trials).items() if result.status is not Status.FAILED}
    assert scored == {}
    assert len(trials) == 30 * len(tasks)
