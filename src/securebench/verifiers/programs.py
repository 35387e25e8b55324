"""Programs in any language, judged on what they print.

The program is built once and runs once per case, each time in a sandbox nobody used before, with the case's input and
nothing else. What it must print stays on the host, or goes to the pack's checker in a sandbox of its own; exit status
and output are only what was observed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from securebench import _fs
from securebench._leftovers import staging_directory
from securebench._paths import relative_path
from securebench.errors import FailureReason, PackError
from securebench.families.code_completion import IoCase, IoTests
from securebench.resources import Component, PackFile, ResourceView
from securebench.sandboxes.base import (
    Bind,
    Command,
    Outcome,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    run_once,
)
from securebench.verifiers._pack_text import read_pack_text
from securebench.verifiers.outputs import same_output
from securebench.workspaces.materialization import VisibilityAwareMaterializer

DEFAULT_SECONDS = 10.0
MAX_BUILT_FILES = 10_000
MAX_BUILT_BYTES = 256 * 1024 * 1024
_MIB = 1024 * 1024
_CASE = "/securebench-case"
_NAMES = {
    "bash": "candidate.sh",
    "c": "candidate.c",
    "c++": "candidate.cpp",
    "cpp": "candidate.cpp",
    "go": "candidate.go",
    "java": "Main.java",
    "javascript": "candidate.js",
    "js": "candidate.js",
    "kotlin": "candidate.kt",
    "lua": "candidate.lua",
    "perl": "candidate.pl",
    "php": "candidate.php",
    "python": "candidate.py",
    "python3": "candidate.py",
    "ruby": "candidate.rb",
    "rust": "candidate.rs",
    "sh": "candidate.sh",
    "shell": "candidate.sh",
    "typescript": "candidate.ts",
}
_REASONS = {
    Outcome.TIMEOUT: FailureReason.WORKER_TIMEOUT,
    Outcome.CPU_LIMIT: FailureReason.WORKER_TIMEOUT,
    Outcome.OUT_OF_MEMORY: FailureReason.WORKER_MEMORY_LIMIT,
    Outcome.OUTPUT_LIMIT: FailureReason.WORKER_OUTPUT_LIMIT,
    Outcome.SIGNALLED: FailureReason.WORKER_CRASHED,
    Outcome.EXITED: FailureReason.WORKER_CRASHED,
}


def source_name(language: str) -> str:
    """The file a candidate in that language is written to; `candidate` where the language is not known here."""
    return _NAMES.get(language.strip().lower(), "candidate")


@dataclass(frozen=True, slots=True)
class Program:
    """One candidate, its tests, and where it runs. `spec` has no mounts yet."""

    task_id: str
    source: str
    language: str
    tests: IoTests
    checker: PackFile | None
    public: ResourceView
    sandbox: Sandbox
    spec: SandboxSpec
    seed: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What was seen of one case."""

    test: int
    outcome: str
    reason: FailureReason | None
    result: SandboxResult | None


async def run_program(program: Program) -> list[Ran]:
    """Every case once, in an order of the run's seed; a program that does not build has failed them all.

    Raises PackError, SandboxError."""
    with _workspace(program) as public, staging_directory() as built:
        if program.tests.compile is not None:
            result = await _build(program, public, built)
            if result is not None:
                reason = FailureReason.WRONG_ANSWER if result.outcome is Outcome.EXITED else _REASONS[result.outcome]
                return [Ran(test, "does not build", reason, result) for test in range(len(program.tests.cases))]
        seed = public if program.tests.compile is None else built
        order = list(range(len(program.tests.cases)))
        random.Random(program.seed).shuffle(order)  # noqa: S311 — seeded with the run's secret
        return [await _case(program, seed, test) for test in order]


@contextmanager
def _workspace(program: Program) -> Iterator[Path]:
    """The public files and the candidate's, as the program finds them in its working directory."""
    with staging_directory() as directory:
        if program.public.files():
            materializer = VisibilityAwareMaterializer(Component.WORKER)
            materializer.materialize(materializer.plan(program.public), directory)
        name = relative_path(source_name(program.language))
        try:
            with _fs.open_directory(directory) as root:
                _fs.write_new(root, name, program.source.encode("utf-8", "surrogatepass"), 0o755)
        except FileExistsError:
            raise PackError(f"task {program.task_id}: a public file has the name {name} of the candidate's") from None
        directory.chmod(0o755)
        yield directory


def _spec(program: Program, seed: Path) -> SandboxSpec:
    work = Scratch(program.spec.cwd, MAX_BUILT_BYTES, seed)
    return replace(program.spec, mounts=(work,))


async def _build(program: Program, seed: Path, built: Path) -> SandboxResult | None:
    """Run the build command and keep the plain files it made; its result when it failed."""
    assert program.tests.compile is not None  # noqa: S101
    spec = _spec(program, seed)
    async with program.sandbox.open(spec) as session:
        result = await session.run(Command(program.tests.compile))
        if not result.ok:
            return result
        await session.stop()
        return None if _kept(session.scratch(spec.cwd), built) else replace(result, outcome=Outcome.EXITED)


def _kept(scratch: int, built: Path) -> bool:
    """Copy what was built, by the strict reader; whether all of it was plain and within bounds."""
    left = MAX_BUILT_BYTES
    try:
        with _fs.open_directory(built) as target:
            for entry in _fs.walk(scratch, PurePosixPath(), MAX_BUILT_FILES):
                if entry.is_dir:
                    with _fs.make_directories(target, entry.path):
                        continue
                left -= entry.size
                if left < 0:
                    return False
                _fs.write_new(target, entry.path, entry.descriptor, 0o755 if entry.executable else 0o644)
    except _fs.UnsafeEntry:
        return False
    built.chmod(0o755)
    return True


async def _case(program: Program, seed: Path, test: int) -> Ran:
    case = program.tests.cases[test]
    expected = case.stdout.encode()
    spec = _spec(program, seed)
    limits = replace(spec.limits, output=max(_MIB, 2 * len(expected)))
    result = await run_once(
        program.sandbox, replace(spec, limits=limits), Command(program.tests.run, stdin=case.stdin.encode())
    )
    if not result.ok:
        return Ran(test, "ended badly", _REASONS[result.outcome], result)
    if result.stdout.truncated:
        return Ran(test, "printed too much", FailureReason.WORKER_OUTPUT_LIMIT, result)
    if program.checker is not None:
        right = await _checked(program, case, result.stdout.data)
    else:
        right = same_output(result.stdout.data, expected, program.tests.compare, program.tests.tolerance)
    return Ran(test, "passed" if right else "wrong output", None if right else FailureReason.WRONG_ANSWER, result)


async def _checked(program: Program, case: IoCase, output: bytes) -> bool:
    """The checker's word: it ends with 0 for a right output. It gets input, expected and found output as files."""
    assert program.checker is not None  # noqa: S101
    name = "checker.py" if program.checker.path.suffix == ".py" else "checker"
    with staging_directory() as directory:
        files = {
            name: read_pack_text(program.checker, program.task_id).encode(),
            "input": case.stdin.encode(),
            "expected": case.stdout.encode(),
            "output": output,
        }
        with _fs.open_directory(directory) as root:
            for file, data in files.items():
                _fs.write_new(root, PurePosixPath(file), data, 0o555 if file == name else 0o444)
        directory.chmod(0o755)
        words = [f"{_CASE}/{file}" for file in ("input", "expected", "output")]
        start = ["python3", "-I", "-B"] if name.endswith(".py") else []
        spec = replace(program.spec, mounts=(Bind(directory, _CASE),), cwd="/")
        result = await run_once(program.sandbox, spec, Command((*start, f"{_CASE}/{name}", *words)))
    return result.ok


def described(runs: list[Ran]) -> dict[str, Any]:
    """What a record keeps of it: numbers and fixed words."""
    ordered = sorted(runs, key=lambda ran: ran.test)
    return {
        "tests": {"planned": len(runs), "passed": sum(ran.outcome == "passed" for ran in runs)},
        "outcomes": [
            {"test": ran.test, "outcome": ran.outcome, "seconds": _seconds(ran.result), "exit_code": _exit(ran.result)}
            for ran in ordered
        ],
        "guarantees": sorted({str(name) for ran in runs if ran.result for name in ran.result.guarantees}),
    }


def _seconds(result: SandboxResult | None) -> float | None:
    return None if result is None else round(result.usage.wall_seconds, 4)


def _exit(result: SandboxResult | None) -> int | None:
    return None if result is None else result.exit_code
