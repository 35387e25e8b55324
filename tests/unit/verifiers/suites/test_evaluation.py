"""Reports in, verdicts out: the one explicit path to a pass, and everything beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.errors import FailureReason, PackError
from securebench.verifiers.suites import canary
from securebench.verifiers.suites.evaluation import decoys_that_fail, guessing, judge_sabotage, judge_suite
from securebench.verifiers.suites.ids import TestId, read_id
from securebench.verifiers.suites.observations import read_report
from securebench.verifiers.suites.sabotage import changed_functions, gutted, sabotaged
from securebench.verifiers.suites.staging import Staged, stage_suite
from securebench.verifiers.suites.wrong_values import wrong_value

SOURCE = "def test_a():\n    assert f() == 1\n\ndef test_b():\n    assert g()\n"
A, B = TestId("t/test_x.py", "test_a"), TestId("t/test_x.py", "test_b")


def staged() -> Staged:
    return stage_suite("pytest", [A, B], {"t/test_x.py": SOURCE}.get, Random(3))


def lines(events: Iterable[object]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def said(test: object, outcome: str, when: str = "call") -> dict[str, str]:
    return {"event": "test", "id": str(test), "when": when, "outcome": outcome}


def honest(s: Staged, **changes: str) -> list[object]:
    """What an honest run of right code reports; `changes` replace single outcomes."""
    outcomes = {s.truths[A]: "passed", s.truths[B]: "passed", s.decoys[A][0]: "failed", s.canaries[0]: "failed"}
    names = {"a": s.truths[A], "b": s.truths[B], "decoy": s.decoys[A][0], "canary": s.canaries[0]}
    for name, outcome in changes.items():
        outcomes[names[name]] = outcome
    return [*(said(test, outcome) for test, outcome in outcomes.items()), {"event": "end", "code": 1}]


def verdict(events: list[object]) -> tuple[bool, FailureReason | None]:
    result = judge_suite(staged(), read_report(lines(events)))
    return result.passed, result.reason


def test_honest_run_of_right_code_passes() -> None:
    assert verdict(honest(staged())) == (True, None)


@pytest.mark.parametrize(
    "changes, ended, held",
    [({}, True, True), ({"a": "failed"}, True, True), ({"canary": "passed"}, True, False), ({}, False, True)],
)
def test_verdict_says_what_came_of_every_test_and_control(changes: dict[str, str], ended: bool, held: bool) -> None:
    events = honest(staged(), **changes)
    result = judge_suite(staged(), read_report(lines(events if ended else events[:-1])))
    assert result.outcomes == {A: changes.get("a", "passed"), B: "passed"}
    assert [(control.name, control.held) for control in result.controls] == [("canary", held), ("twins", True)]
    assert bool(result.message) != result.passed


@pytest.mark.parametrize("line", [said("x", "great"), said("x", "passed", "later"), {"event": "test"}, {}, [], 1])
def test_line_that_no_runner_writes_spoils_the_report(line: object) -> None:
    report = read_report(lines([line, line, {"event": "end"}]))
    assert (report.ended, report.odd_lines, dict(report.outcomes)) == (False, 2, {})
    assert read_report(lines([{"event": "collected"}, {"event": "end"}])).ended


@pytest.mark.parametrize("outcome", ["failed", "skipped", "xfailed"])
@pytest.mark.parametrize("test", ["a", "b"])
def test_test_that_does_not_pass_fails_the_candidate(test: str, outcome: str) -> None:
    passed, reason = verdict(honest(staged(), **{test: outcome}))
    assert not passed
    assert reason is FailureReason.TESTS_FAILED


@pytest.mark.parametrize("changes", [{"canary": "passed"}, {"decoy": "passed"}, {"canary": "skipped"}])
def test_control_that_passes_is_tampering(changes: dict[str, str]) -> None:
    assert verdict(honest(staged(), **changes)) == (False, FailureReason.TAMPERING)


@pytest.mark.parametrize("missing", [0, 1])
def test_expected_test_that_is_not_reported_fails(missing: int) -> None:
    events = honest(staged())
    del events[missing]
    assert verdict(events) == (False, FailureReason.TESTS_FAILED)


@pytest.mark.parametrize("missing", [2, 3])
def test_control_that_is_not_reported_is_tampering(missing: int) -> None:
    events = honest(staged())
    del events[missing]
    assert verdict(events) == (False, FailureReason.TAMPERING)


def test_code_that_does_not_load_is_a_failure_not_tampering() -> None:
    assert verdict([{"event": "collected", "ids": []}, {"event": "end"}]) == (False, FailureReason.TESTS_FAILED)


def test_test_reported_twice_does_not_pass() -> None:
    s = staged()
    assert not verdict([said(s.truths[A], "failed"), *honest(s)])[0]


def test_nothing_counts_without_the_end_and_nothing_after_it() -> None:
    events = honest(staged())
    assert verdict(events[:-1]) == (False, FailureReason.TESTS_FAILED)
    assert not verdict([*events, events[0]])[0]
    assert not verdict([*events, {"event": "end"}])[0]
    assert not judge_suite(staged(), read_report(lines(events) + b"noise\n")).passed


def test_test_whose_teardown_failed_did_not_pass() -> None:
    s = staged()
    assert not verdict([said(s.truths[A], "failed", "teardown"), *honest(s)])[0]


@pytest.mark.parametrize("phases", [["setup"], ["teardown"], ["setup", "teardown"]])
def test_test_that_was_never_called_did_not_pass(phases: list[str]) -> None:
    test = str(staged().truths[A])
    events = [event for event in honest(staged()) if test not in str(event)]
    assert verdict([*(said(test, "passed", when) for when in phases), *events]) == (False, FailureReason.TESTS_FAILED)


@pytest.mark.parametrize(
    "outcomes, together",
    [
        (["passed", "passed", "passed"], "passed"),
        (["passed", "failed", "passed"], "failed"),
        (["passed", "skipped", "passed"], "skipped"),
        (["xfailed", "skipped", "passed"], "skipped"),
        (["passed", "xfailed", "passed"], "xfailed"),
    ],
)
def test_worst_phase_is_what_came_of_a_test(outcomes: list[str], together: str) -> None:
    phases = zip(["setup", "call", "teardown"], outcomes, strict=True)
    report = read_report(lines(said("x", outcome, when) for when, outcome in phases))
    assert report.outcomes == {"x": together}


@given(st.binary(max_size=400))
def test_any_bytes_are_a_report_that_passes_nothing(data: bytes) -> None:
    assert not judge_suite(staged(), read_report(data)).passed


def test_everything_passes_is_what_a_blanket_forger_reports() -> None:
    s = staged()
    events = [*(said(test, "passed") for test in s.chosen), {"event": "end"}]
    assert verdict(events) == (False, FailureReason.TAMPERING)


def test_decoy_that_the_reference_passes_is_left_out() -> None:
    s = staged()
    report = read_report(lines(honest(s, decoy="passed")))
    assert decoys_that_fail(s, report) == frozenset()
    assert judge_suite(s, report, decoys_that_fail(s, report)).passed
    assert not judge_suite(s, report).passed


def test_decoy_must_fail_where_it_does_on_the_reference() -> None:
    """Of a parametrised decoy only the rows with a wrong value fail, and those must."""
    s = staged()
    right, wrong = f"{s.decoys[A][0]}[1]", f"{s.decoys[A][0]}[2]"
    events = [event for event in honest(s) if event["id" if "id" in event else "event"] != str(s.decoys[A][0])]  # type: ignore[index,operator]
    reference = read_report(lines([said(right, "passed"), said(wrong, "failed"), *events]))
    must_fail = decoys_that_fail(s, reference)
    assert must_fail == {wrong}
    assert judge_suite(s, reference, must_fail).passed
    for forged in ([said(wrong, "passed"), said(right, "failed")], [said(right, "failed")]):
        verdict = judge_suite(s, read_report(lines([*forged, *events])), must_fail)
        assert verdict.reason is FailureReason.TAMPERING


def test_chance_of_guessing_is_one_where_nothing_has_twins() -> None:
    s = staged()
    assert guessing(s, [A]) == 0.5
    assert guessing(s, [B]) == 1.0
    assert guessing(s, [A], must_fail=()) == 1.0
    assert guessing(s, [A], must_fail=[f"{s.decoys[A][0]}[1]"]) == 0.5
    assert guessing(s, [A], must_fail=["t/test_x.py::test_of_another"]) == 1.0


def test_hostile_source_cannot_stop_the_one_who_breaks_it() -> None:
    for text in ("x = " + "-" * 100_000 + "1", "def f(): return " + "a." * 20_000 + "b", "f = '\\d'\ndef f(): pass"):
        changed_functions("", text)
        gutted(text, frozenset({"f"}))


def test_sabotage_that_survives_is_no_good() -> None:
    s = staged()
    assert not judge_sabotage(s, read_report(lines(honest(s))), [A]).held
    assert judge_sabotage(s, read_report(lines(honest(s, a="failed"))), [A]).as_record() == {
        "name": "sabotage",
        "held": True,
        "detail": "0 of 1 tests passed on broken code",
    }


EVERY_ASSERTION = "\n".join(f"self.{name}()" for name in (*canary._METHODS, *canary._OF_PYTEST))


@pytest.mark.parametrize("kind", ["pytest", "unittest"])
@pytest.mark.parametrize("source", [None, EVERY_ASSERTION, "no python ("])
def test_canaries_are_tests_that_fail(kind: str, source: str | None) -> None:
    s = stage_suite(kind, [A], lambda _: source, Random(5))
    space: dict[str, object] = {}
    exec(compile(s.files[s.canaries[0].file].decode(), "canary", "exec"), space)
    for one in s.canaries:
        owner, _, method = one.name.rpartition(".")
        test = getattr(space[owner](method), method) if owner else space[method]  # type: ignore[operator]
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            test()


def test_every_kind_of_assertion_in_use_has_a_canary() -> None:
    counts = [
        len(stage_suite("pytest", [A], lambda _, text=text: text, Random(5)).canaries)  # type: ignore[misc]
        for text in (None, "self.assertTrue(x)\npytest.raises(E)", EVERY_ASSERTION)
    ]
    assert counts == [1, 3, 1 + len(canary._METHODS) + len(canary._OF_PYTEST)]


@pytest.mark.parametrize(
    "value",
    [
        *([], [1], [3], [1, 2, 3], [[], [2]], {1, 2}, (1, "x"), {}, {"a": 1}, {"k": 9}, {"x": []}),
        *("", "a", "ab", "--", "10", "0", "A1", b"", b"z", 0.0, 3.0, 0.15, -12.5, 7, 0, -1, True),
    ],
    ids=repr,
)
def test_no_wrong_value_tells_that_it_was_made(value: object) -> None:
    """Whatever can be made of a value, the value can be made of that."""
    for seed in range(40):
        other = wrong_value(value, Random(seed))
        assert type(other) is type(value)
        assert any(wrong_value(other, Random(again)) == value for again in range(2000)), other


@pytest.mark.parametrize("value", [float("inf"), float("nan"), object()], ids=["inf", "nan", "object"])
def test_value_that_none_resembles_gets_none(value: object) -> None:
    with pytest.raises(ValueError, match=r"^no "):
        wrong_value(value, Random(1))


def test_wrong_float_has_as_many_digits_as_the_right_one() -> None:
    for seed in range(40):
        with suppress(ValueError):  # there may be none
            assert len(repr(wrong_value(0.1 + 0.2, Random(seed)))) == len(repr(0.1 + 0.2))


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("pytest", "t/test_x.py::test_a", TestId("t/test_x.py", "test_a")),
        ("pytest", "t/test_x.py::TestA::test_a[1-[x]]", TestId("t/test_x.py", "TestA.test_a", "[1-[x]]")),
        ("unittest", "t.test_x.TestA.test_a", TestId("t/test_x.py", "TestA.test_a")),
        ("unittest", "test_x.TestA.test_a", TestId("test_x.py", "TestA.test_a")),
        ("unittest", "a.b.test_x.TestA.test_a", TestId("a/b/test_x.py", "TestA.test_a")),
        ("unittest", "test_a (t.test_x.TestA)", TestId("t/test_x.py", "TestA.test_a")),
        ("unittest", "test_a (t.test_x.TestA.test_a)", TestId("t/test_x.py", "TestA.test_a")),
    ],
)
def test_ids_are_read(kind: str, text: str, expected: TestId) -> None:
    assert read_id(kind, text, "task") == expected


def test_id_is_written_as_pytest_writes_it_and_keeps_its_parameters_under_another_name() -> None:
    test = TestId("t/test_x.py", "TestA.test_a", "[1]")
    assert str(test) == "t/test_x.py::TestA::test_a[1]"
    assert test.renamed("TestA.test_b") == TestId("t/test_x.py", "TestA.test_b", "[1]")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("pytest", text) for text in ("", "test_a", "../x.py::test_a", "/x.py::test_a", "x.txt::test_a", "x.py::")),
        *(("unittest", text) for text in ("", "test_a", "TestA.test_a", "t..TestA.test_a", ".x.T.a", "x.py::test_a")),
    ],
)
def test_ids_of_another_form_are_the_packs_fault(kind: str, text: str) -> None:
    with pytest.raises(PackError, match=r"form path/test_x\.py::" if kind == "pytest" else r"form package\.test_x\."):
        read_id(kind, text, "task")


BEFORE = (
    "X = 1\ndef f():\n    return 1\nclass A:\n    def m(self):\n        return 1\n    def n(self):\n        return 2\n"
)


def test_changed_functions_are_found_by_name() -> None:
    assert changed_functions(BEFORE, BEFORE.replace("return 1", "return 3")) == {"f", "A.m"}
    assert changed_functions(BEFORE, BEFORE) == frozenset()
    assert changed_functions("", BEFORE) == {"f", "A.m", "A.n"}


@pytest.mark.parametrize("after", [BEFORE.replace("X = 1", "X = 2"), "def broken(:", BEFORE + "\nimport os\n"])
def test_change_outside_functions_cannot_be_gutted(after: str) -> None:
    assert changed_functions(BEFORE, after) is None
    assert sabotaged(BEFORE, after, after) is None


def test_gutted_function_raises_wherever_the_candidate_moved_it() -> None:
    candidate = "def helper():\n    return 5\n\ndef f():\n    return helper()\n"
    broken = sabotaged(BEFORE, BEFORE.replace("def f():\n    return 1", "def f():\n    return 2"), candidate)
    assert broken is not None
    space: dict[str, object] = {}
    exec(compile(broken, "broken", "exec"), space)
    with pytest.raises(RuntimeError):
        space["f"]()  # type: ignore[operator]


def test_function_that_is_not_there_cannot_be_gutted() -> None:
    assert gutted("x = 1\n", frozenset({"f"})) is None
