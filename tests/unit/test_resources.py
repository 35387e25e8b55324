"""Lanes as types: who sees which resource."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest

from securebench.benchmark_compiler import EVAL_VISIBILITY, eval_visibility
from securebench.families.base import EvalModel, Family, InputModel
from securebench.families.registry import FAMILIES
from securebench.resources import (
    REDACTED,
    VISIBLE_TO,
    Component,
    PackFile,
    Resource,
    ResourceBundle,
    Visibility,
)

FILE = PackFile(Path("/pack/hidden"), PurePosixPath("f"), PurePosixPath("f"), read_only=True, digest="")
BUNDLE = ResourceBundle(
    (
        Resource("question", Visibility.PUBLIC, {"text": ["public"]}),
        Resource("assets", Visibility.PUBLIC, [{"path": "a"}], (), is_asset=True),
        Resource("tests", Visibility.EVALUATION_INPUTS, "evaluation", (FILE,)),
        Resource("answer", Visibility.HIDDEN, ["hidden"]),
    )
)


@pytest.mark.parametrize(
    "component, names",
    [
        (Component.AGENT, ["question", "assets"]),
        (Component.WORKER, ["question", "assets"]),
        (Component.TEST_SANDBOX, ["question", "assets", "tests"]),
        (Component.EVALUATOR, ["question", "assets", "answer"]),
    ],
)
def test_component_sees_its_lanes_and_no_other(component: Component, names: list[str]) -> None:
    view = BUNDLE.view(component)
    assert [resource.name for resource in view] == names
    assert view.values().keys() == set(names) - {"assets"}
    assert view.files() == ((FILE,) if "tests" in names else ())


def test_every_component_has_a_row_in_the_lane_table_and_the_worker_gets_the_agents() -> None:
    assert set(VISIBLE_TO) == set(Component)
    assert VISIBLE_TO[Component.WORKER] == VISIBLE_TO[Component.AGENT] == {Visibility.PUBLIC}


def test_summary_shows_public_values_only() -> None:
    assert BUNDLE.summary() == {
        "question": {"visibility": "public", "value": {"text": ["public"]}},
        "assets": {"visibility": "public", "value": [{"path": "a"}]},
        "tests": {"visibility": "evaluation_inputs", "value": REDACTED},
        "answer": {"visibility": "hidden", "value": REDACTED},
    }


def test_secrets_are_exactly_the_private_values() -> None:
    assert BUNDLE.secrets() == ("evaluation", ["hidden"])


def test_value_taken_out_is_a_copy() -> None:
    value = BUNDLE.view(Component.AGENT).values()["question"]
    value["text"].append("changed")
    BUNDLE.summary()["question"]["value"]["text"].append("changed")
    BUNDLE.secrets()[1].append("changed")  # type: ignore[union-attr]
    assert BUNDLE.view(Component.AGENT).values()["question"] == {"text": ["public"]}
    assert BUNDLE.secrets()[1] == ["hidden"]


def test_views_cannot_be_changed() -> None:
    view = BUNDLE.view(Component.AGENT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.resources = BUNDLE.resources  # type: ignore[misc]
    assert not hasattr(view, "__dict__")


def test_lane_table_covers_every_declared_private_field_of_every_family() -> None:
    assert set(EVAL_VISIBILITY) == set(FAMILIES)
    for name, family in FAMILIES.items():
        assert set(EVAL_VISIBILITY[name]) == set(family.eval_model.model_fields)
        assert Visibility.PUBLIC not in EVAL_VISIBILITY[name].values()


@pytest.mark.parametrize(
    "family, evaluation_inputs",
    [
        ("multiple_choice", set()),
        ("short_answer", set()),
        ("free_response", set()),
        ("code_completion", {"tests"}),
        ("repo_patch", {"tests", "candidate_policy"}),
        ("terminal_task", {"checker", "needed_commands", "run_tests", "test_files"}),
    ],
)
def test_lane_of_every_field_is_as_designed(family: str, evaluation_inputs: set[str]) -> None:
    lanes = EVAL_VISIBILITY[family]
    assert {name for name, lane in lanes.items() if lane is Visibility.EVALUATION_INPUTS} == evaluation_inputs
    assert eval_visibility(family, "never_declared") is Visibility.HIDDEN


def test_family_with_a_field_without_a_lane_cannot_be_declared() -> None:
    class Loose(EvalModel):
        answer: str

    family = Family("loose", InputModel, Loose, candidate=FAMILIES["short_answer"].candidate)
    with pytest.raises(TypeError, match=r"loose\.answer must declare exactly one private lane"):
        _ = family.lanes


def test_no_field_is_public_and_private_in_one_family() -> None:
    for family in FAMILIES.values():
        assert not set(family.input_model.model_fields) & set(family.eval_model.model_fields)
