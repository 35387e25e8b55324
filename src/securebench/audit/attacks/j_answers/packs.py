"""Rows with a checker that can be pleased without the work, and their sound twins."""

from __future__ import annotations

from typing import Any

from securebench.audit.plays.answer import Question, question
from securebench.audit.plays.answer_pack import Accepted, Files
from securebench.audit.suite.attack import Attack
from securebench.audit.weak.answer_pack import ReferencePasses

_FILES: Files = (
    ("exists.sh", 'test -e "$SECUREBENCH_WORKSPACE/report.txt"\n'),
    ("always.sh", "exit 0\n"),
    ("structure.sh", 'grep -q "^total " "$SECUREBENCH_WORKSPACE/report.txt"\n'),
    ("sound.sh", 'test "$(cat "$SECUREBENCH_WORKSPACE/report.txt")" = "total 4217"\n'),
    ("good/report.txt", "total 4217\n"),
    ("empty/report.txt", ""),
    ("shaped/report.txt", "total 0\n"),
)


def _terminal(checker: str, *mutants: str) -> Question:
    evaluation = {
        "checker": {"source": "script", "path": checker},
        "reference_workspace": {"path": "good"},
        "mutants": [{"path": mutant} for mutant in mutants],
    }
    return question("terminal_task", {"instructions": "Write the total to report.txt."}, evaluation)


def _sorted(*cases: dict[str, Any], mutant: str) -> Question:
    return question(
        "code_completion",
        {"prompt": "Write ordered(items).", "language": "python", "entry_point": "ordered"},
        {
            "tests": {"source": "cases", "cases": list(cases)},
            "reference_solution": "def ordered(items):\n    return sorted(items)\n",
            "mutants": [f"def ordered(items):\n    {mutant}\n"],
        },
    )


def _capital(least: float) -> Question:
    rubric = {"type": "contains_any", "accepted_answers": ["Oslo"], "min_token_f1": least}
    return question("free_response", {"prompt": "Name the capital.", "context": "Norway: Oslo"}, {"rubric": rubric})


def _brackets(accepted: str) -> Question:
    return question("short_answer", {"question": "What is the empty object?"}, {"accepted_answers": [accepted]})


_SOUND_FILES = Accepted((_terminal("sound.sh", "empty", "shaped"),), _FILES)
_SOUND_CODE = Accepted(
    (_sorted({"args": [[2, 1]], "expected": [1, 2]}, {"args": [[]], "expected": []}, mutant="return items"),)
)
_SOUND_TEXT = Accepted((_capital(1.0), _brackets("an object without fields")))


_ALWAYS, _EXISTS, _SHAPE = _terminal("always.sh"), _terminal("exists.sh", "empty"), _terminal("structure.sh", "shaped")
_CONSTANT = _sorted({"args": [[2, 1]], "predicate": "isinstance(result, list)"}, mutant="return []")
_SAME = _sorted({"args": [[1, 2]], "expected": [1, 2]}, mutant="return items")
_COUNTED = _sorted({"args": [[2, 1]], "predicate": "len(result) >= 2"}, mutant="return [0, 0, 0]")
_ECHOED, _EMPTY = _capital(0.1), _brackets("{}")

_WEAK_FILES = ReferencePasses((_ALWAYS, _EXISTS, _SHAPE), _FILES)
_WEAK_CODE = ReferencePasses((_CONSTANT, _SAME, _COUNTED))
_WEAK_TEXT = ReferencePasses((_ECHOED, _EMPTY))


def _row(threat: str, name: str, how: str, row: Question, reason: str = "trials") -> Attack:
    """Controls take the weak rows of one kind together, to start one set of trials for them all."""
    honest, control = _SOUND_TEXT, _WEAK_TEXT
    if row.family == "terminal_task":
        honest, control = _SOUND_FILES, _WEAK_FILES
    elif row.family == "code_completion":
        honest, control = _SOUND_CODE, _WEAK_CODE
    attack = Accepted((row,), honest.files)
    return Attack(threat, name, how, attack, honest, control, expect=frozenset({reason}), isolated=False)


ATTACKS = (
    _row("J10", "never-says-no", "A checker that is content with everything.", _ALWAYS),
    _row("J10", "file-exists", "A checker that asks only whether there is a file.", _EXISTS),
    _row("J10", "file-has-the-shape", "A checker that asks only how the file begins.", _SHAPE),
    _row("J10", "constant-result", "A test that any list passes.", _CONSTANT),
    _row("J10", "sorted-already", "A test whose input is its output.", _SAME),
    _row("J10", "threshold", "A test that counts and does not compare.", _COUNTED),
    _row("J10", "echo", "A rubric so loose that the task's own words pass.", _ECHOED, "controls"),
    _row("J01", "row-that-wants-nothing", "A row whose right answer is an empty object.", _EMPTY, "controls"),
)
