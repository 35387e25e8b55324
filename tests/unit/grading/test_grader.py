"""Graders: verdicts of the same court as runs, a bounded queue, and whose fault is whose."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap, question
from tests.unit.engine.test_processes import FOREVER, SQUARE, children, sleepers, soon

import securebench
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.extraction import MAX_TEXT_BYTES
from securebench.engine import attempt
from securebench.errors import ConfigError, InfrastructureError, QueueFull
from securebench.families.base import CandidateKind
from securebench.grading import Grader, agrade, grade
from securebench.grading.results import sample_line
from securebench.grading.window import SHOWN_LATER
from securebench.verifiers.base import Assurance, VerificationResult
from securebench.verifiers.registry import verifier_for_task_type
from securebench.verifiers.repo_patch import RepoPatchVerifier

PROSE = {
    "id": "prose",
    "family": "free_response",
    "input": {"prompt": "Say hello."},
    "eval": {"rubric": {"type": "judge", "criteria": "is kind", "controls": [{"response": "go away"}]}},
}
PATCH = {
    "id": "patch",
    "family": "repo_patch",
    "input": {"repo": "tree", "base_commit": "abc", "instructions": "Fix it."},
    "eval": {"tests": {"source": "command", "command": ["true"]}},
    "assets": [{"path": "tree"}],
}
RIGHT, WRONG = "    return x * x\n", "    return x\n"
SLOW = "    import time\n    time.sleep(0.4)\n    return x * x\n"
STALLING = SLOW.replace("0.4", "4")


def write(directory: Path, *rows: dict[str, Any]) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "manifest.yaml").write_text("id: graded\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write(tmp_path / "texts", question(1), question(2), PROSE)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    need_bubblewrap()
    return write(tmp_path / "code", SQUARE, question(1))


@pytest.mark.parametrize("processes", [0, 2])
def test_candidates_are_judged_as_in_runs(code: Path, processes: int) -> None:
    async def main() -> list[VerificationResult]:
        async with Grader(code, processes=processes) as grader:
            return [
                await grader.grade("square", RIGHT),
                await grader.grade("square", {"solution": "def f(x):\n    return x * x\n", "model": "m"}),
                await grader.grade("square", WRONG),
                await grader.grade("square", "    import os\n    os._exit(0)\n"),
                await grader.grade("square", {"task_id": "square", "completion": None}),
                await grader.grade("t1", "Answer: 42"),
            ]

    results = anyio.run(main)
    assert [result.passed for result in results] == [True, True, False, False, False, True]
    assert [result.failure_reason for result in results[2:5]] == ["wrong_answer", "worker_crashed", "no_candidate"]
    assert [result.assurance for result in results[3:]] == [Assurance.ISOLATED, None, Assurance.PURE]
    assert results[4].metadata["message"] == "nothing was produced"
    shown = results[0].as_json()
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["status"], shown["score"], shown["assurance"]) == ("passed", 1.0, "isolated")


@pytest.mark.parametrize("processes", [0, 1])
def test_what_a_model_must_judge_is_no_reward_without_one(texts: Path, processes: int) -> None:
    with Grader.sync(texts, processes=processes) as grader:
        with pytest.raises(ConfigError, match="task prose: it needs a model judge, and none is named; give a tester"):
            grader.grade("prose", "Hello!")
        assert grader.grade("t1", "Answer: 42").passed
        assert grader.metrics.done == 1


@pytest.mark.parametrize(
    ("task", "candidate", "message"),
    [
        ("pros", "x", r"the pack has no task 'pros' \(did you mean 'prose'"),
        ("t1", {"completion": "x", "solution": "y"}, "task t1: holds completion and solution"),
        ("t1", {"task_id": "t2", "completion": "x"}, "task t1: the sample is of task 't2'"),
        ("t1", {"model_patch": "x"}, "task t1: model_patch: this task collects a text"),
        ("t1", {}, "holds no candidate"),
        ("t1", 7, "expected text or an object, found int"),
    ],
)
def test_asking_wrongly_is_the_callers_mistake(texts: Path, task: str, candidate: Any, message: str) -> None:
    with Grader.sync(texts, processes=0) as grader:
        with pytest.raises(ConfigError, match=message):
            grader.grade(task, candidate)
        assert grader.metrics.done == 0


def test_candidate_however_large_is_a_verdict_and_nobody_else_notices(texts: Path) -> None:
    huge = "x" * (40 * 2**20)
    assert len(sample_line("t1", CandidateKind.TEXT, huge)) < 2 * MAX_TEXT_BYTES
    with Grader.sync(texts, processes=1) as grader:
        for candidate in (huge, {"model_reply": huge}, "\ud800" * MAX_TEXT_BYTES):
            assert grader.grade("t1", candidate).failure_reason == "candidate_too_large"
        assert grader.grade("t1", "Answer: 42").passed
        assert grader.metrics.restarts == 0


def test_fault_of_the_pack_raises_and_is_nobodys_verdict(tmp_path: Path) -> None:
    need_bubblewrap()
    broken = SQUARE | {"eval": {"tests": {"source": "inline", "code": "raise RuntimeError('not a test')"}}}
    with Grader.sync(write(tmp_path / "pack", broken), processes=1) as grader:
        with pytest.raises(InfrastructureError, match="task square"):
            grader.grade("square", RIGHT)
        assert (grader.metrics.errors, grader.metrics.done) == (1, 0)


def test_grader_outside_its_context_is_refused(texts: Path) -> None:
    grader = Grader(texts, processes=0)
    with pytest.raises(ConfigError, match="used within its context"):
        anyio.run(grader.grade, "t1", "x")
    with pytest.raises(ConfigError, match="used within its context"):
        Grader.sync(texts).grade("t1", "x")
    with pytest.raises(ConfigError, match="used within its context"):
        anyio.run(anext, grader.grade_many([("t1", "x")]))
    with pytest.raises(ConfigError, match="used within its context"):
        next(Grader.sync(texts).grade_many([("t1", "x")]))

    async def left() -> None:
        async with grader:
            pass
        await anext(grader.grade_many([("t1", "x")]))

    with pytest.raises(ConfigError, match="used within its context"):
        anyio.run(left)
    with pytest.raises(ConfigError, match="0 or more"):
        Grader(texts, queue=-1)


FORKED = {
    "grade": lambda grader: grader.grade("t1", "Answer: 42"),
    "grade_many": lambda grader: list(grader.grade_many([("t1", "Answer: 42")])),
    "metrics": lambda grader: grader.metrics,
    "exit": lambda grader: grader.__exit__(None, None, None),
}


def ended(pid: int, seconds: float = 60) -> int | None:
    """The exit code of a child of ours; None where it did not end, and was killed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@pytest.mark.parametrize("what", FORKED)
def test_grader_in_a_forked_process_is_refused(texts: Path, what: str) -> None:
    with Grader.sync(texts, processes=0) as grader:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                FORKED[what](grader)
                code = 6
            except ConfigError:
                code = 7
            finally:
                os._exit(code)
        assert ended(pid) == (6 if what == "exit" else 7)
        assert grader.grade("t1", "Answer: 42").passed


FORKS = """
import os, sys
from pathlib import Path
from securebench import compile_benchmark_pack, grade, load_benchmark_pack

task = compile_benchmark_pack(load_benchmark_pack(sys.argv[1] + "/manifest.yaml", sys.argv[1] + "/tasks.jsonl"))[0]
assert grade(task, "Answer: 42").passed
pid = os.fork()
if pid == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), grade(task, "Answer: 42").passed)
"""


def test_forked_process_ends_although_its_parent_has_graded(texts: Path) -> None:
    argv = [sys.executable, "-c", FORKS, str(texts)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
    assert (done.stdout, done.stderr) == ("5 True\n", "")


def test_verdicts_come_in_the_order_of_the_candidates(code: Path) -> None:
    candidates = [("square", SLOW), ("t1", "Answer: 42"), ("square", WRONG), ("t1", "Answer: 41")] * 2
    with Grader.sync(code, processes=2) as grader:
        assert [result.passed for result in grader.grade_many(candidates)] == [True, True, False, False] * 2

    async def main() -> list[bool]:
        async with Grader(code, processes=2) as grader:
            return [result.passed async for result in grader.grade_many(candidates)]

    assert anyio.run(main) == [True, True, False, False] * 2


@pytest.mark.parametrize("processes", [0, 1])
def test_an_endless_source_is_taken_from_only_as_fast_as_it_is_judged(texts: Path, processes: int) -> None:
    taken = 0

    def endless() -> Iterator[tuple[str, str]]:
        nonlocal taken
        while True:
            taken += 1
            yield "t1", "Answer: 42"

    with Grader.sync(texts, processes=processes, queue=3) as grader:
        many, most = grader.grade_many(endless()), SHOWN_LATER * grader._grader.places
        for shown in range(1, 30):
            assert next(many).passed
            assert taken <= shown + most
        many.close()

    async def main() -> None:
        nonlocal taken
        taken = 0
        async with Grader(texts, processes=processes, queue=3) as grader:
            shown = 0
            many, most = grader.grade_many(endless()), SHOWN_LATER * grader.places
            async for _ in many:
                shown += 1
                assert taken <= shown + most
                if shown == 30:
                    break
            await many.aclose()

    anyio.run(main)


STALLED = [("square", "    import time\n    time.sleep(8)\n    return x * x\n"), *[("t1", "Answer: 42")] * 500]


def test_one_slow_candidate_keeps_the_others_going(code: Path) -> None:
    """While the first of many is judged, others are: as many as may wait to be shown, and not more."""

    async def main() -> int:
        async with Grader(code, processes=2, queue=2) as grader:
            many = grader.grade_many(STALLED)
            assert (await anext(many)).passed
            done = grader.metrics.done
            await many.aclose()
            return done

    assert 40 < anyio.run(main) <= SHOWN_LATER * 4
    with Grader.sync(code, processes=2, queue=2) as grader:
        many = grader.grade_many(STALLED)
        assert next(many).passed
        assert 40 < grader.metrics.done <= SHOWN_LATER * 4
        assert sum(result.passed for result in many) == 500


def test_one_fault_among_many_raises_at_its_place(texts: Path) -> None:
    with Grader.sync(texts, processes=1) as grader:
        many = grader.grade_many([("t1", "Answer: 42"), ("nobody", "x"), ("t2", "Answer: 42")])
        assert next(many).passed
        with pytest.raises(ConfigError, match="no task 'nobody'"):
            next(many)


def test_full_queue_is_told_to_those_who_do_not_wait_and_others_wait(code: Path) -> None:
    async def main() -> None:
        async with Grader(code, processes=1, queue=1) as grader, anyio.create_task_group() as group:
            results = []

            async def one(candidate: str) -> None:
                results.append(await grader.grade("square", candidate))

            for candidate in (STALLING, RIGHT, RIGHT, RIGHT):
                group.start_soon(one, candidate)
            await soon(lambda: grader.metrics.running)
            metrics = grader.metrics
            assert (metrics.running, metrics.queued, metrics.waiting) == (1, 1, 2)
            with pytest.raises(QueueFull, match="come back later"):
                await grader.grade("square", SLOW, wait=False)
            await soon(lambda: len(results) == 4)
            assert (await grader.grade("t1", "Answer: 42", wait=False)).passed
            metrics = grader.metrics
            assert (metrics.refused, metrics.done, dict(metrics.statuses)) == (1, 5, {"passed": 5})
            assert (metrics.running, metrics.queued, metrics.waiting) == (0, 0, 0)

    anyio.run(main)


def test_candidate_without_a_place_is_not_copied(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []

    def noted(*given: Any) -> bytes:
        copied.append(given)
        return sample_line(*given)

    monkeypatch.setattr("securebench.grading.grader.sample_line", noted)
    with Grader.sync(code, processes=1, queue=0) as grader:
        futures = [grader.submit("square", FOREVER) for _ in range(5)]
        anyio.run(soon, lambda: grader.metrics.waiting == 4)
        assert len(copied) == 1
        for future in futures:
            future.cancel()


@pytest.mark.parametrize("processes", [0, 1])
def test_cancelled_call_ends_its_work_and_gives_its_place_back(code: Path, processes: int) -> None:
    async def main() -> None:
        async with Grader(code, processes=processes, queue=0) as grader:
            async with anyio.create_task_group() as group:
                group.start_soon(grader.grade, "square", FOREVER)
                await soon(sleepers)
                group.cancel_scope.cancel()
            await soon(lambda: not sleepers(), 20)  # before the time of a call is over
            assert grader.metrics.cancelled == 1
            assert (await grader.grade("square", RIGHT)).passed

    anyio.run(main)


@pytest.mark.parametrize("processes", [0, 1])
def test_closing_ends_the_calls_that_are_left_and_scores_none_of_them(code: Path, processes: int) -> None:
    async def main() -> None:
        async def late(grader: Grader) -> None:
            with pytest.raises(InfrastructureError, match="the grader was closed"):
                await grader.grade("square", FOREVER)

        async with anyio.create_task_group() as group:
            async with Grader(code, processes=processes, queue=1) as grader:
                assert (await grader.grade("square", RIGHT)).passed
                for _ in range(5):
                    group.start_soon(late, grader)
                await soon(sleepers)
            with anyio.fail_after(60):
                await soon(lambda: grader.metrics.errors == 5)
            assert (grader.metrics.done, grader.metrics.cancelled, sleepers()) == (1, 0, [])

    anyio.run(main)


@contextmanager
def few_descriptors(left: int) -> Iterator[None]:
    """This process can open so many more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, before[1]))
    held = []
    try:
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        for _ in range(left):
            os.close(held.pop())
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_this_process_runs_out_of_is_nobodys_verdict(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_WAITS", (0.01, 0.01))
    faults = 0
    with Grader.sync(code, processes=0) as grader:
        assert grader.grade("square", RIGHT).passed
        for left in range(12):
            with few_descriptors(left):
                try:
                    assert grader.grade("square", RIGHT).passed, left
                except InfrastructureError:
                    faults += 1
        assert grader.grade("square", RIGHT).passed
    assert faults > 1


def test_patches_leave_nothing_behind_however_many_there_are(tmp_path: Path) -> None:
    need_bubblewrap()
    tests = {"source": "command", "command": ["python3", "-c", "import m, sys; sys.exit(m.f(3) != 9)"]}
    pack = write(tmp_path / "pack", PATCH | {"eval": {"tests": tests}})
    (pack / "assets" / "tree").mkdir(parents=True)
    (pack / "assets" / "tree" / "m.py").write_text("def f(x):\n    return x\n")
    (pack / "assets" / "tree" / "large").write_bytes(bytes(range(256)) * 1024)
    (pack / "manifest.yaml").write_text("id: graded\nversion: 1\nasset_roots: {public: assets/}\n")

    def held() -> int:
        size = 0
        for place in Path(tempfile.gettempdir()).glob(f"securebench-{os.getpid()}-*"):
            for folder, _, names in os.walk(place):
                for name in names:
                    with suppress(FileNotFoundError):  # what is left of a sandbox is removed in the background
                        size += Path(folder, name).lstat().st_size
        return size

    with Grader.sync(pack, processes=0) as grader:
        first = None
        for number in range(6):
            change = (
                f"--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,3 @@\n def f(x):\n-    return x\n+    return x * x\n+# {number}\n"
            )
            assert grader.grade("patch", change).passed
            if first is None:
                time.sleep(1)
                first = held()
            anyio.run(soon, lambda most=first: held() <= most)
        verifier = verifier_for_task_type("repo_patch")
        assert isinstance(verifier, RepoPatchVerifier)
        before = len(verifier._suites)
    assert len(verifier._suites) == before - 1


def test_time_is_up_for_a_thread_that_does_not_wait_longer(code: Path) -> None:
    with Grader.sync(code, processes=1, queue=0) as grader:
        with pytest.raises(TimeoutError):
            grader.grade("square", FOREVER, timeout=0.5)
        began = time.monotonic()
        assert grader.grade("square", RIGHT).passed
        assert time.monotonic() - began < 25  # the time of a call is 30


def test_killed_process_is_seen_in_the_metrics_only(code: Path) -> None:
    with Grader.sync(code, processes=1) as grader:

        def kill() -> None:
            anyio.run(soon, sleepers)
            os.kill(children()[0], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        assert grader.grade("square", STALLING).passed
        thread.join()
        assert grader.metrics.restarts == 1


def test_threads_share_a_grader(texts: Path) -> None:
    with Grader.sync(texts, processes=2) as grader:
        passed = []

        def work() -> None:
            passed.extend(grader.grade("t1", f"Answer: {number}").passed for number in range(40, 45))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert passed.count(True) == 8
    assert len(passed) == 40


def test_grader_takes_tasks_of_its_pack_only(texts: Path, tmp_path: Path) -> None:
    pack = load_benchmark_pack(texts / "manifest.yaml", texts / "tasks.jsonl")
    other = write(tmp_path / "other", question(1, eval={"accepted_answers": [41]}))
    stranger = compile_benchmark_pack(load_benchmark_pack(other / "manifest.yaml", other / "tasks.jsonl"))[0]
    with Grader.sync(pack, processes=0) as grader:
        assert grader.grade(compile_benchmark_pack(pack)[0], "Answer: 42").passed
        with pytest.raises(ConfigError, match="another one in this grader's pack"):
            grader.grade(stranger, "Answer: 41")


def test_single_tasks_are_judged_without_a_grader(code: Path) -> None:
    square, text = compile_benchmark_pack(load_benchmark_pack(code / "manifest.yaml", code / "tasks.jsonl"))
    assert securebench.grade is grade
    assert grade(square, RIGHT).passed
    assert not grade(square, WRONG).passed
    assert grade(text, {"solution": "Answer: 42"}).passed

    async def main() -> list[bool]:
        async with anyio.create_task_group() as group:
            group.start_soon(agrade, square, FOREVER)
            await soon(sleepers)
            group.cancel_scope.cancel()
        await soon(lambda: not sleepers(), 20)  # before the time of a call is over
        return [(await agrade(square, RIGHT)).passed, (await agrade(text, "Answer: 7")).passed]

    assert anyio.run(main) == [True, False]
    with pytest.raises(ConfigError, match="holds no candidate"):
        grade(text, {})
    with pytest.raises(ConfigError, match="a Grader"):
        grade("square", RIGHT)  # type: ignore[arg-type]


def test_hidden_values_are_in_no_result(tmp_path: Path) -> None:
    need_bubblewrap()
    tests = {"source": "cases", "cases": [{"args": [3], "expected": "only the tests know this"}]}
    with Grader.sync(write(tmp_path / "pack", SQUARE | {"eval": {"tests": tests}}), processes=1) as grader:
        result = grader.grade("square", "    raise ValueError('tell me more')\n")
    assert not result.passed
    assert "only the tests know" not in json.dumps(result.as_json())
