"""Rows of every family: what is valid loads, compiles, keeps its lanes; what is not is a PackError, nothing else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packs import Row, load, tasks, write_pack

from securebench.errors import PackError
from securebench.families.registry import FAMILIES
from securebench.pack_schema import row_json_schema
from securebench.resources import Component
from securebench.workspaces.materialization import VisibilityAwareMaterializer

MARKER = "zqmarker77"
QUICK = settings(max_examples=25)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
LETTERS = st.text("abcdefgh", min_size=1, max_size=8)
NAMES = st.text("abcdefgh-_0123456789", min_size=1, max_size=10).filter(lambda name: not name.startswith("-"))
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)
SECONDS = st.floats(0.1, 1000) | st.integers(1, 1000)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
PRIVATE = WORDS.map(lambda text: MARKER + text)
"""Text that must stay private, recognisable by its marker."""


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def record(required: dict[str, st.SearchStrategy[Any]], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=fields)


FILE = st.just({"path": "secret.txt"})
TEXT_OR_FILE = PRIVATE | FILE
CASE = st.fixed_dictionaries(
    {"args": st.lists(JSON, max_size=2), "expected": st.lists(PRIVATE, min_size=1)}
) | st.fixed_dictionaries({"kwargs": st.dictionaries(WORDS, JSON, max_size=2), "raises": PRIVATE})
SUITE = {"timeout_seconds": SECONDS, "setup_patch": TEXT_OR_FILE, "test_patch": TEXT_OR_FILE, "workdir": NAMES}

INPUTS: dict[str, st.SearchStrategy[Any]] = {
    "multiple_choice": record(
        {"question": WORDS, "choices": st.lists(LETTERS, min_size=3, max_size=26, unique=True)},
        multi_select=st.booleans(),
    ),
    "short_answer": record({"question": WORDS}, answer_format=st.just("text")),
    "free_response": record({"prompt": WORDS}, context=WORDS),
    "code_completion": record(
        {"prompt": WORDS, "language": st.just("python"), "entry_point": LETTERS}, starter_code=WORDS
    ),
    "repo_patch": record({"repo": WORDS, "base_commit": WORDS, "instructions": WORDS}, hints=WORDS),
    "terminal_task": record({"instructions": WORDS}, context=WORDS),
}
EVALS: dict[str, st.SearchStrategy[Any]] = {
    "multiple_choice": record({"answer": st.integers(0, 2)}),
    "short_answer": record({"accepted_answers": st.lists(LETTERS.map(lambda text: MARKER + text), min_size=1)}),
    "free_response": record(
        {
            "rubric": record(
                {
                    "type": st.just("judge"),
                    "criteria": PRIVATE,
                    "controls": st.lists(record({"response": PRIVATE}, passes=st.just(False)), min_size=1, max_size=3),
                },
                pass_score=st.floats(0.1, 1),
            )
        },
        reference_answer=TEXT_OR_FILE,
    ),
    "code_completion": record(
        {
            "tests": record({"source": st.just("inline"), "code": PRIVATE}, timeout_seconds=SECONDS)
            | record({"source": st.just("cases"), "cases": st.lists(CASE, min_size=1, max_size=3)})
            | record(
                {
                    "source": st.just("io"),
                    "run": st.just(["run"]),
                    "cases": st.lists(record({"stdout": PRIVATE}, stdin=PRIVATE), min_size=1, max_size=3),
                },
                compare=st.sampled_from(["exact", "tokens", "float"]),
            )
            | FILE
        },
        reference_solution=TEXT_OR_FILE,
        canonical_solution=TEXT_OR_FILE,
    ),
    "repo_patch": record(
        {
            "tests": record(
                {"source": st.sampled_from(["pytest", "unittest"]), "fail_to_pass": st.lists(PRIVATE, min_size=1)},
                pass_to_pass=st.lists(PRIVATE),
                **SUITE,
            )
        },
        candidate_policy=optional(allow_paths=st.lists(PRIVATE, max_size=2)),
        gold_patch=TEXT_OR_FILE,
    ),
    "terminal_task": record(
        {"checker": record({"source": st.sampled_from(["pytest", "script"]), "path": st.just("check.py")})},
        needed_commands=st.lists(NAMES.map(lambda name: MARKER + name), max_size=2),
        test_files=st.lists(FILE, max_size=2),
        expected_state=st.dictionaries(WORDS, PRIVATE, min_size=2, max_size=3),
    ),
}
ENVIRONMENT = optional(
    image=st.just("python:3.12"),
    workdir=NAMES.map("/{}".format),
    timeout_seconds=SECONDS,
    resources=optional(memory=st.sampled_from(["1g", 2**20, "64 MiB"]), pids=st.integers(1, 1000), cpus=SECONDS),
    network=optional(allowed_domains=st.lists(LETTERS.map("{}.example".format), max_size=2)),
)
EXTRA = st.dictionaries(NAMES.map("zz_undeclared_{}".format), PRIVATE | st.lists(PRIVATE), max_size=2)


@st.composite
def rows(draw: st.DrawFn, family: str) -> Row:
    """A valid row; every private text in it begins with the marker."""
    private = draw(EVALS[family]) | draw(EXTRA)
    source = {"id": draw(NAMES), "family": family, "input": draw(INPUTS[family]), "eval": private}
    if draw(st.booleans()):
        source["assets"] = [{"path": "data.txt", "mount": draw(NAMES.map("files/{}".format))}, {"path": "tree"}]
    if draw(st.booleans()):
        source["environment"] = draw(ENVIRONMENT)
    if draw(st.booleans()):
        source["metadata"] = draw(st.dictionaries(WORDS, JSON, max_size=3))
    return source


@pytest.mark.parametrize("family", FAMILIES)
@QUICK
@given(data=st.data())
def test_valid_row_round_trips_and_keeps_its_private_values(family: str, data: st.DataObject) -> None:
    source = data.draw(rows(family))
    with tempfile.TemporaryDirectory() as temporary:
        pack = write_pack(Path(temporary) / "pack", [source])
        (task,) = tasks(pack)
        assert task.agent_payload()["input"] == source["input"]
        assert task.agent_payload()["metadata"] == source.get("metadata", {})
        private = task.evaluation_payload().get("evaluation_inputs", {}) | task.hidden_payload().get("hidden", {})
        assert private == source["eval"]
        target = Path(temporary) / "target"
        target.mkdir()
        materializer = VisibilityAwareMaterializer(Component.AGENT)
        materializer.materialize(materializer.plan(task.view_for(Component.AGENT), task.agent_payload()), target)
        seen = [str(path.relative_to(target)).encode() for path in target.rglob("*")]
        seen += [path.read_bytes() for path in target.rglob("*") if path.is_file()]
        seen += [json.dumps(task.agent_payload(), ensure_ascii=False).encode()]
        seen += [json.dumps(task.resource_summary(), ensure_ascii=False).encode()]
        assert not any(MARKER.encode() in content for content in seen)
        assert json.loads((target / "task.json").read_bytes()) == task.agent_payload()


SCHEMA = row_json_schema()
KNOWN_KEYS = sorted(
    {key for node in (*SCHEMA["anyOf"], *SCHEMA["$defs"].values()) for key in node.get("properties", {})}
)
ODD_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8)
    | st.sampled_from([*FAMILIES, "../x", "/etc", "inline", "cases", "secret.txt", "data.txt", "A", "1g", "number"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KNOWN_KEYS) | st.text(st.characters(), max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


def loads_or_is_refused(source: Any) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pack = write_pack(Path(temporary), [json.dumps(source)])
        refused = None
        try:
            for task in tasks(pack):
                task.hidden_payload()
        except PackError as error:
            refused = error
        if refused is not None:
            assert refused.problems
            assert str(refused).encode("utf-8")
            assert all(len(str(problem)) < 2000 for problem in refused.problems)


@settings(max_examples=150)
@given(ODD_JSON)
def test_any_json_value_as_a_row_loads_or_is_a_pack_error(source: Any) -> None:
    loads_or_is_refused(source)


@pytest.mark.parametrize("family", FAMILIES)
@QUICK
@given(data=st.data())
def test_valid_row_with_one_value_replaced_loads_or_is_a_pack_error(family: str, data: st.DataObject) -> None:
    source = data.draw(rows(family))
    container: Any = source
    while True:
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        key = data.draw(st.sampled_from(keys))
        below = container[key]
        if not isinstance(below, dict | list) or not below or data.draw(st.booleans()):
            container[key] = data.draw(ODD_JSON)
            break
        container = below
    loads_or_is_refused(source)


@QUICK
@given(st.lists(NAMES, min_size=1, max_size=8))
def test_ids_are_unique_or_the_pack_is_refused(ids: list[str]) -> None:
    source = {"family": "short_answer", "input": {"question": "?"}, "eval": {"accepted_answers": ["x"]}}
    with tempfile.TemporaryDirectory() as temporary:
        pack = write_pack(Path(temporary), [source | {"id": name} for name in ids])
        if len(set(ids)) == len(ids):
            assert load(pack).ids == tuple(ids)
        else:
            with pytest.raises(PackError, match="duplicate id"):
                load(pack)
