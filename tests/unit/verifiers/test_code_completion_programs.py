"""Programs judged on what they print, in any language."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.rooms.judging import Trial, bubblewrap, verdict, verdicts

from securebench.errors import FailureReason
from securebench.resources import Component, PackFile, Resource, ResourceView, Visibility
from securebench.sandboxes.base import Command, Limits, SandboxResult, SandboxSpec, Scratch
from securebench.verifiers.base import Status
from securebench.verifiers.code_completion import CodeCompletionVerifier
from securebench.verifiers.outputs import same_output
from securebench.verifiers.programs import source_name

PY = ["python3", "candidate.py"]
CASES = [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "5 6\n", "stdout": "11\n"}]
HONEST = "print(sum(map(int, input().split())))"


def io(**more: Any) -> dict[str, Any]:
    return {"source": "io", "run": PY, "cases": CASES, "timeout_seconds": 20, **more}


SH = "read a b; echo $((a + b))"
BUILD = {
    "compile": ["sh", "-c", "cp candidate.sh built && chmod +x built && mkdir d && cp built d/x"],
    "run": ["sh", "d/x"],
}

TRIALS: dict[str, tuple[Trial, FailureReason | None]] = {
    "python": (Trial(HONEST, io()), None),
    "shell": (Trial(SH, io(run=["sh", "candidate.sh"]), language="sh"), None),
    "built first": (Trial(SH, io(**BUILD), language="sh"), None),
    "does not build": (Trial(SH, io(compile=["false"], run=["true"]), language="sh"), FailureReason.WRONG_ANSWER),
    "builds something odd": (
        Trial(SH, io(compile=["ln", "-s", "/etc/passwd", "x"], run=["sh", "candidate.sh"]), language="sh"),
        FailureReason.WRONG_ANSWER,
    ),
    "wrong": (Trial("print(3)", io()), FailureReason.WRONG_ANSWER),
    "right, then a bad end": (Trial(HONEST + "\nraise SystemExit(1)", io()), FailureReason.WORKER_CRASHED),
    "more than it should": (Trial(HONEST + "\nprint('OK')", io()), FailureReason.WRONG_ANSWER),
    "hangs": (Trial("while True: pass", io(timeout_seconds=1)), FailureReason.WORKER_TIMEOUT),
    "floods": (Trial("while True: print('x' * 10000)", io()), FailureReason.WORKER_OUTPUT_LIMIT),
    "kills itself": (Trial("import os; os.kill(os.getpid(), 9)", io()), FailureReason.WORKER_CRASHED),
    "tokens": (Trial("a, b = map(int, input().split()); print('\\n\\n ', a + b)", io(compare="tokens")), None),
    "floats": (Trial("a, b = map(int, input().split()); print(a + b + 1e-9)", io(compare="float")), None),
    "floats too far": (
        Trial("a, b = map(int, input().split()); print(a + b + 0.1)", io(compare="float", tolerance=0.001)),
        FailureReason.WRONG_ANSWER,
    ),
    "remembers the last case": (
        Trial(
            "import os\nn = len(os.listdir('.')) + len(os.listdir('/tmp'))\nopen('/tmp/x', 'w'); open('y', 'w')\nprint(3 if n < 2 else 11)",
            io(),
        ),
        FailureReason.WRONG_ANSWER,
    ),
    "leaves a daemon": (
        Trial(
            "import os, time\nif os.fork():\n    " + HONEST + "\nelse:\n    os.setsid(); time.sleep(30); print('late')",
            io(),
        ),
        None,
    ),
    "looks for the answers": (
        Trial(
            "import os, re\nfound = ''\nfor top in ('/proc/self', '/tmp', '.', '/securebench-case'):\n    for d, _, files in os.walk(top):\n        for f in files:\n"
            "            try: found += open(os.path.join(d, f), errors='replace').read(100000)\n            except OSError: pass\n"
            "print(re.search('ANSWER-[0-9]+', found)[0])",
            io(cases=[{"stdin": "", "stdout": "ANSWER-123456789\n"}]),
        ),
        FailureReason.WORKER_CRASHED,
    ),
}


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    return verdicts({name: trial for name, (trial, _) in TRIALS.items()})


@pytest.mark.parametrize("name", TRIALS)
def test_programs(judged: dict[str, Any], name: str) -> None:
    reason = TRIALS[name][1]
    result = judged[name]
    assert (result.failure_reason, result.passed) == (reason, reason is None), dict(result.metadata)
    assert result.metadata["tests"]["planned"] == len(TRIALS[name][0].tests["cases"])


def test_positive_control_in_one_sandbox_a_program_remembers() -> None:
    source = "import os\nprint(3 if not os.path.exists('/tmp/x') else 11)\nopen('/tmp/x', 'w')"

    async def main() -> list[SandboxResult]:
        spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=60))
        async with bubblewrap().open(spec) as session:
            return [await session.run(Command(("python3", "-c", source))) for _ in range(2)]

    assert [result.stdout.data for result in anyio.run(main)] == [b"3\n", b"11\n"]


CHECKER = (
    "import sys\ninput, expected, output = (open(p).read().split() for p in sys.argv[1:])\n"
    "sys.exit(0 if sorted(output) == sorted(expected) and len(input) == 2 else 1)\n"
)


@pytest.mark.parametrize(
    ("source", "passed"),
    [("a, b = input().split(); print(b, a)", True), ("print(1)", False), ("print('x' * 10000, '\\0')", False)],
)
def test_a_checker_of_the_packs_decides_where_there_is_one(tmp_path: Path, source: str, passed: bool) -> None:
    (tmp_path / "check.py").write_text(CHECKER)
    cases = [{"stdin": "1 2\n", "stdout": "1 2\n"}]
    tests = io(cases=cases, checker={"path": "check.py"})
    verification = Trial(source, tests).verification(bubblewrap())
    file = PackFile(tmp_path, PurePosixPath("check.py"), PurePosixPath("check.py"), True, "")
    resources = tuple(
        Resource("tests", Visibility.EVALUATION_INPUTS, tests, (file,)) if resource.name == "tests" else resource
        for resource in verification.tests
    )
    verification = type(verification)(
        **{
            name: getattr(verification, name)
            for name in ("task_id", "candidate", "evaluator", "worker", "sandbox", "seed")
        },
        tests=ResourceView(Component.TEST_SANDBOX, resources),
    )
    result = anyio.run(CodeCompletionVerifier().verify, verification)
    assert result.passed is passed, dict(result.metadata)


def test_a_wrong_language_is_the_packs_fault() -> None:
    assert verdict(HONEST, io(), language="python").status is Status.PASSED
    assert source_name("C++") == "candidate.cpp"
    assert source_name("Brainfuck") == "candidate"


@pytest.mark.parametrize(
    ("found", "expected", "compare", "answer"),
    [
        (b"a\n", b"a\n", "exact", True), (b"a", b"a\n", "exact", False), (b" a  b\n", b"a b", "tokens", True), (b"a b c", b"a b", "tokens", False),
        (b"1.0000001", b"1", "float", True), (b"nan", b"1", "float", False), (b"inf", b"1e999", "float", False), (b"nan", b"nan", "float", True),
        (b"x 1", b"x 1.0", "float", True), (b"y 1", b"x 1", "float", False), (b"1_0", b"10", "float", False), (b"0x10", b"16", "float", False),
        (b"", b"", "tokens", True), (b"", b"1", "float", False), (b"\xff", b"\xff", "exact", True), ("１".encode(), b"1", "float", False),
    ],
)  # fmt: skip
def test_comparisons(found: bytes, expected: bytes, compare: str, answer: bool) -> None:
    assert same_output(found, expected, compare, None) is answer


@given(st.binary(max_size=60), st.binary(max_size=60), st.sampled_from(["exact", "tokens", "float"]))
def test_comparing_is_total_and_knows_itself(one: bytes, other: bytes, compare: str) -> None:
    same_output(one, other, compare, 0.1)
    assert same_output(one, one, compare, 0.1)
