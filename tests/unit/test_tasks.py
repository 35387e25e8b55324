"""What each component is told about a task, and that nothing leads from there to what it may not know."""

from __future__ import annotations

import gc
import json
import types
from pathlib import Path
from typing import Any

import pytest
from tests.packs import VALID_ROWS, changed, marked_rows, row, tasks, write_pack

from securebench.resources import Component
from securebench.tasks import SecureBenchTask

MARKER = "zqmarker77"
FAMILY_ROWS = marked_rows(MARKER)
TEXT_MARKED = [source for source in FAMILY_ROWS if source["family"] != "multiple_choice"]


def reachable(start: Any) -> set[str]:
    """Every text that can be reached from an object without going through code, types or modules."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)
    seen: dict[int, Any] = {}
    texts: set[str] = set()
    waiting = [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, code):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, str):
            texts.add(thing)
        waiting += gc.get_referents(thing)
        if isinstance(thing, types.GeneratorType | types.MappingProxyType):
            waiting += list(thing)
    return texts


def sees(start: Any) -> bool:
    return any(MARKER in text for text in reachable(start))


@pytest.fixture
def task(tmp_path: Path, request: pytest.FixtureRequest) -> SecureBenchTask:
    return tasks(write_pack(tmp_path, [request.param]))[0]


every_family = pytest.mark.parametrize("task", FAMILY_ROWS, ids=[r["family"] for r in FAMILY_ROWS], indirect=True)


@every_family
def test_no_private_value_can_be_reached_from_what_an_agent_gets(task: SecureBenchTask) -> None:
    assert not sees(task.view_for(Component.AGENT))
    assert not sees(task.view_for(Component.WORKER))
    assert not sees(task.agent_payload())
    assert not sees(task.public_payload())
    assert not sees(task.resource_summary())
    assert not sees(task.environment)


@every_family
def test_private_values_can_be_reached_from_the_bundle(task: SecureBenchTask) -> None:
    """The positive control: the walk finds the marker where it is."""
    assert sees(task.resources)
    assert sees(task)
    assert sees(task.hidden_payload())


@pytest.mark.parametrize("task", FAMILY_ROWS[3:], ids=[r["family"] for r in FAMILY_ROWS[3:]], indirect=True)
def test_test_sandbox_and_evaluator_do_not_see_each_others_lane(task: SecureBenchTask) -> None:
    evaluation, hidden = task.evaluation_payload(), task.hidden_payload()
    assert "hidden" not in evaluation
    assert "evaluation_inputs" not in hidden
    assert not set(evaluation["evaluation_inputs"]) & set(hidden["hidden"])
    for component, lane in ((Component.TEST_SANDBOX, "hidden"), (Component.EVALUATOR, "evaluation_inputs")):
        assert lane not in {str(resource.visibility) for resource in task.view_for(component)}


@every_family
def test_changing_a_payload_changes_nothing(task: SecureBenchTask) -> None:
    def spoil(value: Any) -> None:
        if isinstance(value, dict):
            for item in list(value.values()):
                spoil(item)
            value.clear()
        elif isinstance(value, list):
            for item in value:
                spoil(item)
            value.append("spoiled")

    payloads = (task.agent_payload, task.evaluation_payload, task.hidden_payload, task.resource_summary)
    before = [json.dumps(payload()) for payload in payloads]
    for payload in payloads:
        spoil(payload())
    spoil(task.view_for(Component.AGENT).values())
    assert [json.dumps(payload()) for payload in payloads] == before


def test_agent_payload_is_the_public_lane_and_nothing_else(tmp_path: Path) -> None:
    source = row("terminal_task", metadata={"source": {"url": "x"}}, environment={"timeout_seconds": 7})
    (task,) = tasks(write_pack(tmp_path, [source]))
    payload = task.agent_payload()
    assert payload.keys() == {
        "task_id",
        "benchmark_id",
        "task_type",
        "input",
        "assets",
        "environment",
        "candidate",
        "metadata",
    }
    assert payload["input"] == source["input"]
    assert payload["metadata"] == source["metadata"]
    assert payload["assets"] == [
        {"path": "data.txt", "read_only": True},
        {"path": "work/tree", "read_only": False},
    ]
    assert payload["environment"]["workdir"] == "/workspace"
    assert payload["environment"]["timeout_seconds"] == 7
    assert str(tmp_path) not in json.dumps(payload), "no host path"


def test_payload_of_a_task_without_private_files_has_no_empty_lanes(tmp_path: Path) -> None:
    (task,) = tasks(write_pack(tmp_path, [row()]))
    assert task.hidden_payload()["hidden"] == {"answer": "B"}
    assert "evaluation_inputs" not in task.evaluation_payload()


@pytest.mark.parametrize("family", VALID_ROWS)
def test_payload_says_nothing_about_how_many_private_fields_there_are(tmp_path: Path, family: str) -> None:
    plain = row(family)
    more = changed(plain, "eval.zz_notes", {"long": ["x"] * 50})
    first, second = tasks(write_pack(tmp_path, [plain, more | {"id": plain["id"][:-1] + "2"}]))
    a, b = first.agent_payload(), second.agent_payload()
    assert a.pop("task_id") != b.pop("task_id")
    assert a == b
