"""`plan.json`: one way to write it, nothing else is read, never replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._canonical import digest_bytes
from securebench.errors import ConfigError, IntegrityError, StoreError
from securebench.records.plan import (
    PLAN_FILE,
    BenchmarkName,
    Filters,
    Plan,
    PlannedTask,
    decode_plan,
    load_plan,
    rfc3339,
    write_plan,
)
from securebench.records.plan_break import break_plan, plan_break

DIGEST = digest_bytes(b"x")


def plan(**changes: Any) -> Plan:
    values: dict[str, Any] = {
        "run_id": "r1",
        "created_at": "2026-01-02T03:04:05.678Z",
        "benchmark": BenchmarkName(id="b", version="1"),
        "pack_digest": DIGEST,
        "tasks": (PlannedTask(id="a", task_type="short_answer", digest=DIGEST), PlannedTask(id="ü", task_type="x", digest="d")),
        "attempts": 2,
        "harness": {"type": "command"},
        "config_digest": DIGEST,
        "securebench": "0.1.0 sha256:0",
        "seed_commitment": "0" * 64,
    }  # fmt: skip
    return Plan(**(values | changes))


def test_plan_reads_back_with_the_digest_of_its_bytes(tmp_path: Path) -> None:
    write_plan(tmp_path / "new", plan())
    assert load_plan(tmp_path / "new") == (plan(), plan().digest)
    assert digest_bytes((tmp_path / "new" / PLAN_FILE).read_bytes()) == plan().digest


def test_first_attempts_come_first() -> None:
    assert list(plan().attempt_keys()) == [("a", 1), ("ü", 1), ("a", 2), ("ü", 2)]
    assert plan().total == 4


def test_tasks_may_have_attempts_of_their_own() -> None:
    a, b = plan().tasks
    uneven = plan(tasks=(a.model_copy(update={"attempts": 3}), b), attempts=1)
    assert list(uneven.attempt_keys()) == [("a", 1), ("ü", 1), ("a", 2), ("a", 3)]
    assert uneven.total == 4
    assert decode_plan(uneven.encode()) == uneven
    assert plan(attempts=1).differences(uneven) == ["tasks changed: a"]


def test_what_older_plans_could_not_say_leaves_their_digest_alone() -> None:
    assert plan().digest == "sha256:e3d9b266c7307440db8ad5c8a7566b2ec6a0e3dc29c6a01152b22f80a9fb43d5"
    limited = "sha256:7346a2e7227fc31506fc706f64613a06ee52e117a05ad74e522684fd969b13c7"
    assert plan(filters=Filters(limit=3)).digest == limited
    assert plan(filters=Filters(limit=3, sampled=True)).digest != limited


def test_plan_is_never_replaced(tmp_path: Path) -> None:
    write_plan(tmp_path, plan())
    with pytest.raises(StoreError, match="there is a plan already"):
        write_plan(tmp_path, plan(attempts=3))
    assert load_plan(tmp_path)[0] == plan()
    assert [path.name for path in tmp_path.iterdir()] == [PLAN_FILE]


def test_everything_decided_is_in_the_digest() -> None:
    changes: list[dict[str, Any]] = [
        {"run_id": "r2"}, {"attempts": 3}, {"pack_digest": digest_bytes(b"y")}, {"config_digest": digest_bytes(b"y")},
        {"limits": {"memory": 1}}, {"harness": {"type": "chat"}}, {"filters": Filters(limit=2)}, {"unsafe": True},
        {"seed_commitment": "1" * 64}, {"images": {"a": "b"}}, {"prompt_digest": DIGEST}, {"securebench": "0.2"},
        {"tasks": (PlannedTask(id="a", task_type="short_answer", digest="other"),)},
    ]  # fmt: skip
    digests = {plan().digest, *(plan(**change).digest for change in changes)}
    assert len(digests) == len(changes) + 1


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda value: value.update(more=1), "more: Extra inputs are not permitted"),
        (lambda value: value["tasks"][0].update(more=1), "tasks.0.more: Extra inputs"),
        (lambda value: value["filters"].update(more=1), "filters.more: Extra inputs"),
        (lambda value: value.pop("attempts"), "attempts: Field required"),
        (lambda value: value.update(attempts="2"), "attempts: Input should be a valid integer"),
        (lambda value: value.update(attempts=0), "attempts: Input should be greater"),
        (lambda value: value.update(attempts=True), "attempts: Input should be a valid integer"),
        (lambda value: value.update(plan_version=2), "plan_version: Input should be 1"),
        (lambda value: value.update(run_id="../x"), "run_id: String should match"),
        (lambda value: value.update(run_id="x\n"), "run_id: String should match"),
        (lambda value: value.update(pack_digest="sha256:" + "A" * 64), "pack_digest: String should match"),
        (lambda value: value.update(seed_commitment="0"), "seed_commitment: String should match"),
        (lambda value: value.update(created_at="yesterday"), "created_at: String should match"),
        (lambda value: value["tasks"].append(value["tasks"][0]), "a task is planned twice"),
        (lambda value: value["tasks"][0].update(id=""), "tasks.0.id: String should have at least 1"),
        (lambda value: value["tasks"][0].update(id="x" * 5000), "tasks.0.id: String should have at most 4096"),
    ],
)
def test_anything_that_is_no_plan_is_refused(change: Any, message: str) -> None:
    value = json.loads(plan().encode())
    change(value)
    with pytest.raises(IntegrityError, match=f"plan.json: not a plan of ours: .*{message}"):
        decode_plan(json.dumps(value).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000])
def test_anything_that_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"plan\.json: "):
        decode_plan(data)


@pytest.mark.parametrize(
    "other",
    [
        lambda data: data + b"\n",
        lambda data: data.replace(b":", b": ", 1),
        lambda data: data.replace("ü".encode(), b"\\u00fc"),
        lambda data: data.replace(b'"attempts":2', b'"attempts":2.0'),
        lambda data: json.dumps(json.loads(data), sort_keys=True).encode(),
    ],
)
def test_same_plan_in_other_bytes_is_refused(other: Any) -> None:
    data = other(plan().encode())
    assert data != plan().encode()
    with pytest.raises(IntegrityError, match=r"plan\.json: "):
        decode_plan(data)


def test_missing_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="there is no plan"):
        load_plan(tmp_path)


@pytest.mark.parametrize("value", [2**60, 2.0**60, [{"x": 1e300}], float("inf"), "\ud800"])
def test_value_without_canonical_form_is_the_operators_problem(value: Any) -> None:
    with pytest.raises((ConfigError, ValueError)):
        plan(limits={"x": value}).encode()


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.text() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)))  # fmt: skip
def test_whatever_details_there_are_read_back(details: dict[str, Any]) -> None:
    try:
        made = plan(limits=details)
        data = made.encode()
    except ValueError:  # lone surrogates
        return
    except ConfigError:
        return
    assert decode_plan(data).encode() == data


def test_differences_say_what_changed_and_nothing_else() -> None:
    later = plan(created_at="2027-01-02T03:04:05Z", seed_commitment="1" * 64, host={"machine": "other"})
    assert plan().differences(later) == []
    changed = plan(
        attempts=3,
        limits={"memory": 2},
        tasks=(PlannedTask(id="a", task_type="short_answer", digest="other"), PlannedTask(id="c", task_type="x", digest="d")),
    )  # fmt: skip
    assert plan(limits={"memory": 1}).differences(changed) == [
        "attempts: 2 → 3",
        "limits.memory: 1 → 2",
        "tasks no longer planned: ü",
        "tasks newly planned: c",
        "tasks changed: a",
    ]


def test_filters_are_false_where_the_whole_pack_runs() -> None:
    assert not Filters()
    assert all([Filters(limit=0), Filters(tasks=("a",)), Filters(tags=("x",))])


def test_times_are_written_in_one_way() -> None:
    assert rfc3339(1.0625) == "1970-01-01T00:00:01.062Z"
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_change_of_plan_is_a_line_that_names_the_new_one(tmp_path: Path) -> None:
    write_plan(tmp_path, plan())
    for number in (2, 3):
        other = plan(attempts=number)
        line = break_plan(tmp_path, other, plan().differences(other), "2026-01-02T03:04:05Z") | {"previous": "x"}
        found = plan_break(line, "r:1")
        assert found is not None
        assert load_plan(tmp_path, found.plan) == (other, found.digest)
        assert found.plan == f"plan-{number}.json"
    assert found.changed == ("attempts: 2 → 3",)
    assert plan_break({"task_id": "a"}, "r:1") is None
    with pytest.raises(IntegrityError, match="r:1: not a change of plan"):
        plan_break(line | {"plan_break": {"plan": "../plan-2.json"}}, "r:1")


def test_change_of_plan_says_no_more_than_may_be_read_back(tmp_path: Path) -> None:
    line = break_plan(tmp_path, plan(), ["x" * 10_001] * 101, "2026-01-02T03:04:05Z")
    assert (line["record_version"], line["run_id"]) == (1, "r1")
    found = plan_break(line, "r:1")
    assert found is not None
    assert found.changed == ("x" * 10_000,) * 100


def test_change_of_plan_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none/plan-2\.json: No such file"):
        break_plan(tmp_path / "none", plan(), [], "2026-01-02T03:04:05Z")
