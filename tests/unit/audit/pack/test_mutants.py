"""Mutants change one thing and stay programs; idle programs know what the prompt says and no more."""

from __future__ import annotations

import ast
from pathlib import Path

import anyio
import pytest
from tests.packs import changed, row, tasks, write_pack

from securebench.audit.pack.entrants import EQUIVALENT, Entrants
from securebench.audit.pack.idle import examples, idle_programs, samples
from securebench.audit.pack.making import Maker
from securebench.audit.pack.mutants import python_mutants, text_mutants
from securebench.audit.pack.trials import Entrant
from securebench.candidates.store import CandidateStore
from securebench.sandboxes.host import HostSandbox

SOURCE = '''\
def grade(points, limit=10):
    """The grade, naïvely: `pass` from 5 on."""
    if points < 0 or points > limit:
        raise ValueError("points")
    total = points + 1
    label = "fäil"  # é
    if not total:
        return None
    return label if total >= 6 else "pass"
'''


def mutated(source: str, most: int = 100) -> dict[str, str]:
    return {mutant.what: mutant.source for mutant in python_mutants(source, most, 0)}


def test_every_kind_of_change_is_made_and_only_that() -> None:
    made = mutated(SOURCE)
    assert made["a comparison changed in line 3"] in (
        SOURCE.replace("points < 0", "(points <= 0)"),
        SOURCE.replace("points > limit", "(points >= limit)"),
    )
    assert made["and/or exchanged in line 3"] == SOURCE.replace(
        "points < 0 or points > limit", "(points < 0 and points > limit)"
    )
    assert made["an exception not raised in line 4"] == SOURCE.replace('raise ValueError("points")', "pass")
    assert made["an operator changed in line 5"] == SOURCE.replace("points + 1", "(points - 1)")
    assert made["a constant one larger in line 5"] == SOURCE.replace("+ 1", "+ 2")
    assert made["a statement left out in line 6"] == SOURCE.replace('label = "fäil"', "pass")
    assert made["a text changed in line 6"] == SOURCE.replace('"fäil"', "'fäil!'")
    assert made["a negation left out in line 7"] == SOURCE.replace("not total", "(total)")
    assert made["None returned in line 9"] == SOURCE.replace('return label if total >= 6 else "pass"', "return None")


def test_mutants_are_programs_have_ids_and_are_chosen_by_the_seed() -> None:
    every = python_mutants(SOURCE, 100, 0)
    for mutant in every:
        ast.parse(mutant.source)
    assert len({mutant.id for mutant in every}) == len(every) > 10
    few = python_mutants(SOURCE, 5, 7)
    assert few == python_mutants(SOURCE, 5, 7)
    assert len(few) == 5
    assert len({mutant.what.partition(" in ")[0] for mutant in few}) == 5


def test_only_these_lines_are_changed() -> None:
    assert {mutant.line for mutant in python_mutants(SOURCE, 100, 0, lines=[5])} == {5}


@pytest.mark.parametrize(
    "source",
    ["", "def f(:\n", "\0", "x = " + "(" * 300, "x = " + "+".join(["1"] * 9000), 'def f():\n    """only words"""\n'],
)
def test_what_cannot_be_changed_gives_no_mutant(source: str) -> None:
    assert python_mutants(source, 5, 0) == []


def test_loops_do_not_lose_what_ends_them() -> None:
    loop = "def f(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i\n"
    assert not any(what.startswith("a statement left out in line 4") for what in mutated(loop))


def test_texts_are_changed_too() -> None:
    made = {mutant.what: mutant.source for mutant in text_mutants("a,4\nb,9\n", 10, 0)}
    assert made["only the first line left"] == "a,4\n"
    assert made["lines in reverse order"] == "b,9\na,4\n"
    assert made["a number one larger"] in ("a,5\nb,9\n", "a,4\nb,10\n")


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (">>> f(1, [2, 3])\n5\n", [("(1, [2, 3])", 5)]),
        ("f('a') == 'b'", [("('a',)", "b")]),
        ("f(3) ➞ [1, 2], f(4) -> None", [("(3,)", [1, 2]), ("(4,)", None)]),
        ("For f(2) it should return True.", [("(2,)", True)]),
        ("f(x) is the value of x", []),
        ("f(1", []),
    ],
)
def test_examples_are_read_from_prompts(prompt: str, expected: list[tuple[str, object]]) -> None:
    assert examples(prompt, "f") == expected


def test_samples_of_programs_are_read_from_prompts() -> None:
    assert samples("Add.\n\nSample input:\n3 4\nSample output:\n7\n\nNote.") == [("['3', '4']", "7")]


def test_idle_programs_are_programs() -> None:
    public = {
        "language": "python",
        "entry_point": "f",
        "prompt": "def f(x):\n    '''As in\n    >>> f(1)\n    2\n    '''\n",
    }
    made = list(idle_programs(public, reads_input=False))
    for idle in made:
        ast.parse(idle.source)
    assert {idle.rule for idle in made} == {"J01", "J10", "P02"}
    shown = {"language": "python", "prompt": "Input\n1\nOutput\n2\n"}
    assert {idle.rule for idle in idle_programs(shown, reads_input=True)} == {"J10", "P02"}
    assert list(idle_programs({**shown, "language": "rust"}, reads_input=True)) == []
    method = next(idle for idle in idle_programs({**public, "entry_point": "A.f"}, False) if idle.rule == "J10")
    assert method.source.startswith("class A:\n    def f(self,")


def entered(directory: Path, **evaluation: object) -> list[Entrant]:
    """What is sent into the trials of a row of code; nothing is run."""
    source = changed(row("code_completion"), "eval.canonical_solution", None)
    source["eval"] |= evaluation
    (task,) = tasks(write_pack(directory, [source]))

    async def made() -> list[Entrant]:
        maker = Maker(task, HostSandbox(), CandidateStore(directory / "store"))
        return [entrant async for entrant in Entrants(4, 0)(maker)]

    return anyio.run(made)


def test_the_idle_and_the_mutants_enter_but_not_those_the_author_calls_equivalent(tmp_path: Path) -> None:
    every = entered(tmp_path / "a")
    mutants = [entrant.mutant for entrant in every if entrant.rule == "P23"]
    assert {entrant.rule for entrant in every} >= {"J10", "P23"}
    assert not any(entrant.must_pass for entrant in every)
    left = entered(tmp_path / "b", **{EQUIVALENT: mutants[:1]})
    assert [entrant.mutant for entrant in left if entrant.rule == "P23"] == mutants[1:]
