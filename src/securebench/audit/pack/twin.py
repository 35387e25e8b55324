"""The twin of a pack: the same public side, other answers. Whatever an agent sees must be the same, byte for byte.

Each row gets the hidden side of another row of its family, or, where it has no such neighbour, one of its own with
other values; a row of options gets another right option, and once more its options in another order. The twin is
written, loaded and compiled like any pack. A difference on the agent's side means that the hidden side leaks into the
public one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securebench import _fs, _json
from securebench._leftovers import staging_directory
from securebench.answers.options import LETTERS
from securebench.audit.pack.notes import Note
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack, load_benchmark_pack
from securebench.errors import PackError
from securebench.families.multiple_choice import right_options
from securebench.pack_schema import AnyRow
from securebench.resources import Component
from securebench.tasks import SecureBenchTask
from securebench.verifiers.multiple_choice import judge_with_key, option_key

Compiler = Callable[[BenchmarkPack], Iterable[SecureBenchTask]]
MARK = "securebench_twin"
ANSWERS, OPTIONS = "other answers", "other options"
_CHOICES = ("payload.input", "view")
_ROUNDS = 5
"""How often rows that the twin cannot have are left out before it is given up."""


@dataclass(slots=True)
class TwinResult:
    compared: int = 0
    notes: list[Note] = field(default_factory=list)
    left_out: int = 0  # rows that cannot have another hidden side

    def __str__(self) -> str:
        left_out = f", {self.left_out} that have none left out" if self.left_out else ""
        return f"{self.compared} rows compared with their twins{left_out}"


def compare_with_twins(pack: BenchmarkPack, compiler: Compiler = compile_benchmark_pack) -> TwinResult:
    """Compile the pack and its twins and compare what agents see. `compiler` is what is put to the test."""
    rows = [json.loads(raw) for raw in _raw_rows(pack)]
    result = TwinResult()
    seen = [agent_side(task) for task in compiler(pack)]
    with staging_directory() as staging:
        for name, made in ((ANSWERS, _with_other_answers(pack, rows)), (OPTIONS, _reordered(rows))):
            twins = dict(made)
            twin = _loaded(pack, staging / f"{name.replace(' ', '-')}.jsonl", twins)
            if twin is None:
                result.left_out += len(twins)
                continue
            loaded, kept = twin
            result.left_out += len(twins) - len(kept)
            for position, (number, task) in enumerate(zip(kept, compiler(loaded), strict=True)):
                result.compared += 1
                problem = _difference(seen[number], agent_side(task), _CHOICES if name == OPTIONS else ())
                if not problem and name == OPTIONS:
                    problem = _misplaced(pack[number].row, loaded[position].row, task)
                if problem:
                    entry = pack.entries[number]
                    detail = f"with {name}, {problem}"
                    result.notes.append(Note("P10", detail, entry.line, entry.id, entry.family))
    return result


def agent_side(task: SecureBenchTask) -> dict[str, bytes]:
    """All that an agent's side is made from, in parts: what it is told, its files and its environment."""
    view = task.view_for(Component.AGENT)
    files = [[str(file.mount), str(file.path), file.read_only, file.digest] for file in view.files()]
    parts = {f"payload.{name}": value for name, value in task.agent_payload().items()}
    environment = task.environment
    limits = [environment.memory, environment.cpus, environment.pids, environment.disk]
    parts |= {"files": files, "view": view.values(), "limits": limits}
    parts["environment"] = [environment.materialize_workdir_from_image, task.benchmark_version]
    return {name: _json.dumps(value).encode() for name, value in parts.items()}


def _difference(one: dict[str, bytes], other: dict[str, bytes], but: Sequence[str] = ()) -> str:
    differing = [name for name in {**one, **other} if one.get(name) != other.get(name) and name not in but]
    return f"the agent's {', '.join(differing)} differs" if differing else ""


def _raw_rows(pack: BenchmarkPack) -> Iterator[bytes]:
    with _fs.open_named(pack.tasks_path) as file:
        for entry in pack.entries:
            file.seek(entry.offset)
            yield file.read(entry.length)


def _with_other_answers(pack: BenchmarkPack, rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, (row, entry) in enumerate(zip(rows, pack.entries, strict=True)):
        groups[_json.dumps([entry.family, *_kind(entry.family, row)])].append(number)
    for numbers in groups.values():
        for number, other in zip(numbers, [*numbers[1:], numbers[0]], strict=True):
            family, own, given = pack.entries[number].family, rows[number]["eval"], rows[other]["eval"]
            if family == "multiple_choice" or given == own:
                given = _altered(family, rows[number])
            yield number, {**rows[number], "eval": {**given, MARK: f"other answers {number}"}}


def _kind(family: str, row: dict[str, Any]) -> list[Any]:
    """What rows must have in common so that one can have the other's hidden side."""
    public, private = row["input"], row["eval"]
    if family == "short_answer":
        return [public.get("answer_format"), "tolerance" in private]
    if family == "code_completion":
        tests = private.get("tests")
        return [public.get("language"), "entry_point" in public, tests.get("source") if tests else ""]
    return []


def _altered(family: str, row: dict[str, Any]) -> dict[str, Any]:
    """A hidden side with other values of the same kind."""
    public, private = row["input"], row["eval"]
    if family == "multiple_choice":
        answer = private["answer"]
        right = right_options(tuple(public["choices"]), tuple(answer) if isinstance(answer, list) else answer)
        moved = sorted((index + 1) % len(public["choices"]) for index in right)
        return {**private, "answer": moved if isinstance(answer, list) else moved[0]}
    if family == "short_answer":
        return {**private, "accepted_answers": [_other(answer) for answer in private["accepted_answers"]]}
    if family == "free_response" and private["rubric"]["type"] == "contains_any":
        accepted = [f"{answer} or its twin" for answer in private["rubric"]["accepted_answers"]]
        return {**private, "rubric": {**private["rubric"], "accepted_answers": accepted, "rejected_answers": []}}
    return dict(private)


def _other(answer: Any) -> Any:
    if isinstance(answer, int | float):
        return answer + 1
    return str(int(answer) + 1) if str(answer).isdecimal() and len(answer) < 1000 else answer


def _reordered(rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Rows of options with the options turned by one; the right ones stay right."""
    for number, row in enumerate(rows):
        choices = row["input"].get("choices")
        if isinstance(choices, list):
            answer = row["eval"]["answer"]
            right = right_options(tuple(choices), tuple(answer) if isinstance(answer, list) else answer)
            moved = sorted((index - 1) % len(choices) for index in right)
            private = {**row["eval"], "answer": moved if isinstance(answer, list) else moved[0]}
            yield number, {**row, "input": {**row["input"], "choices": [*choices[1:], choices[0]]}, "eval": private}


def _misplaced(old: AnyRow, new: AnyRow, task: SecureBenchTask) -> str:
    """What goes wrong when only the order of options changes: something else changes, or a verdict stays behind."""
    choices, count = old.input.choices, len(old.input.choices)
    wanted = old.input.model_dump(mode="json", exclude_unset=True) | {"choices": [*choices[1:], choices[0]]}
    if task.agent_payload()["input"] != wanted:
        return "the agent's input is not the row's with its options turned"
    keys = option_key(old.input, old.eval), option_key(new.input, new.eval)
    for index in range(count):
        before, after = LETTERS[index], LETTERS[(index - 1) % count]
        if judge_with_key(keys[0], before).passed != judge_with_key(keys[1], after).passed:
            return f"the verdict on option {before} does not follow its text"
    return ""


def _loaded(
    pack: BenchmarkPack, place: Path, twins: dict[int, dict[str, Any]]
) -> tuple[BenchmarkPack, list[int]] | None:
    """The twin as a pack, without the rows it cannot have; None where there is none left."""
    kept = sorted(twins)
    for _ in range(_ROUNDS):
        if not kept:
            return None
        place.write_bytes(b"".join(_json.dumps(twins[number]).encode() + b"\n" for number in kept))
        try:
            return load_benchmark_pack(pack.manifest_path, place), kept
        except PackError as error:
            wrong = {problem.line for problem in error.problems}
            kept = [number for line, number in enumerate(kept, 1) if line not in wrong]
    return None
