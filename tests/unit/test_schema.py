"""Closed models: errors in the author's words, and JSON Schemas that say what the models check."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

import pytest
from pydantic import Discriminator, Field, Tag
from tests.packs import VALID_ROWS

from securebench._schema import ClosedModel, FileRef, Schema, suggest
from securebench._yaml import parse
from securebench.errors import Problem
from securebench.families.registry import FAMILIES
from securebench.pack_schema import MANIFEST, row_json_schema
from securebench.tester_config import TESTER


class Leaf(ClosedModel):
    number: Annotated[int, Field(ge=0)] = 0
    ratio: float = 0.0


class Other(ClosedModel):
    word: str


class Tree(ClosedModel):
    kind: Literal["tree"] = "tree"
    leaves: Annotated[tuple[Leaf, ...], Field(min_length=1)]
    either: Annotated[
        Annotated[Leaf, Tag("leaf")] | Annotated[Other, Tag("other")],
        Discriminator(lambda value: "leaf" if isinstance(value, dict) and "number" in value else "other"),
    ] = Leaf()
    mixed: int | str | None = None


SCHEMA: Schema[Tree] = Schema(Tree)


def found(value: Any) -> list[tuple[str, str]]:
    result = SCHEMA.validate(value, "f", lambda _: 7)
    assert isinstance(result, list)
    assert {(problem.file, problem.line) for problem in result} == {("f", 7)}
    return [(problem.field, problem.message) for problem in result]


def test_valid_value_becomes_a_frozen_model() -> None:
    tree = SCHEMA.validate({"leaves": [{"number": 1}]}, "f", lambda _: 1)
    assert isinstance(tree, Tree)
    with pytest.raises(ValueError, match="frozen"):
        tree.mixed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, [("", "expected an object, found nothing (null)")]),
        ([], [("", "expected an object, found a list")]),
        ({}, [("leaves", "required key is missing")]),
        ({"leaves": []}, [("leaves", "expected at least 1 items, found 0")]),
        ({"leaves": [{"number": "x"}]}, [("leaves[0].number", "expected a whole number, found text")]),
        ({"leaves": [{"number": True}]}, [("leaves[0].number", "expected a whole number, found true/false")]),
        ({"leaves": [{"number": 1.5}]}, [("leaves[0].number", "expected a whole number, found a number")]),
        ({"leaves": [{"ratio": "1"}]}, [("leaves[0].ratio", "expected a number, found text")]),
        ({"leaves": [{"ratio": False}]}, [("leaves[0].ratio", "expected a number, found true/false")]),
        ({"leaves": [{}], "mixed": []}, [("mixed", "expected a whole number or text, found a list")]),
        ({"leaves": [{}], "kind": "bush"}, [("kind", "expected one of 'tree', found text")]),
        ({"leaves": [{}], "leafs": 1}, [("leafs", "unknown key 'leafs' (did you mean 'leaves'?)")]),
        (
            {"leaves": [{}], "either": {"number": 1, "wrd": 1}},
            [("either.wrd", "unknown key 'wrd' (did you mean 'word'?)")],
        ),
        (
            {"leaves": [{}], "either": {"number": 1, "word": "x"}},
            [("either.word", "unknown key 'word' (it belongs to another version or kind of this section)")],
        ),
    ],
)
def test_problem_names_place_and_kind(value: Any, expected: list[tuple[str, str]]) -> None:
    assert found(value) == expected


def test_all_problems_are_found_at_once() -> None:
    fields = [field for field, _ in found({"leaves": [{"number": -1}, 5], "x": 1, "mixed": {}})]
    assert sorted(fields) == ["leaves[0].number", "leaves[1]", "mixed", "x"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"x", {1, 2}, object()])
def test_data_that_json_cannot_say_is_a_problem_and_not_an_exception(value: Any) -> None:
    assert found({"leaves": [{"ratio": value}]})[0][1] == "expected plain data with finite numbers"


def test_deep_and_half_text_are_problems() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert found({"leaves": deep}) == [("", "nested too deeply")]
    while deep:
        deep = deep[0]  # taken apart by hand: the garbage collector would recurse
    assert found({"leaves": "\ud800"}) == [("", "a text holds half a character (lone surrogate)")]


def test_value_is_never_repeated() -> None:
    marker = "zqmarker"
    for value in (marker, [marker], {"kind": marker}, {"leaves": [{"number": marker}], "mixed": [marker]}):
        assert marker not in str(found(value))


def test_number_of_problems_is_bounded() -> None:
    assert len(found({"leaves": [1] * 5000})) == 1000


def test_place_that_the_text_already_explains_is_not_reported_again() -> None:
    result = SCHEMA.check(parse(b"leaves: [{number: .nan}]\nmixed: []\n", "f.yaml"))
    assert isinstance(result, list)
    assert [(problem.line, problem.field) for problem in result] == [(1, "leaves[0].number"), (2, "mixed")]


def test_document_with_problems_has_no_value_even_if_the_rest_is_valid() -> None:
    result = SCHEMA.check(parse(b"leaves: [{}]\nmixed: 1\nmixed: 2\n", "f.yaml"))
    assert result == [Problem("f.yaml", 3, "mixed", "duplicate key 'mixed' (first on line 2)")]


def test_suggestion_among_very_many_names_takes_no_time() -> None:
    names = [f"bigcode/some-repository__name-{number}" for number in range(20_000)]
    took = []
    for _ in range(3):  # the garbage collector may look at everything that tests have loaded meanwhile
        began = time.process_time()
        assert suggest("bigcode/some-repository__name-1999x", names) != ""
        assert suggest("bigcode/some-repositry__name-77", names) != ""
        took.append(time.process_time() - began)
    assert min(took) < 0.3


def test_a_name_in_other_letters_is_suggested_first() -> None:
    assert suggest("humaneval/0", ["HumanEval/90", "HumanEval/0", "humaneval/1"]) == " (did you mean 'HumanEval/0'?)"


@pytest.mark.parametrize(
    "key, hint", [("pth", "path"), ("mont", "mount"), ("readonly", "read_only"), ("zzz", None), ("", None)]
)
def test_suggestion_comes_only_from_near(key: str, hint: str | None) -> None:
    assert suggest(key, FileRef.model_fields) == (f" (did you mean {hint!r}?)" if hint else "")


# The exported JSON Schemas, checked by a reader of the few keywords that pydantic writes


def accepts(schema: dict[str, Any], value: Any, root: dict[str, Any] | None = None) -> bool:
    """A small JSON Schema reader: structure only, enough to compare a schema with its model."""
    root = root or schema
    if "$ref" in schema:
        return accepts(root["$defs"][schema["$ref"].rpartition("/")[2]], value, root)
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return any(accepts(member, value, root) for member in members)
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    kind = schema.get("type")
    if kind == "null":
        return value is None
    if kind and not isinstance(value, kinds[kind]):
        return False
    if kind in {"integer", "number"} and isinstance(value, bool):
        return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if not set(schema.get("required", ())) <= value.keys():
            return False
        extra = schema.get("additionalProperties", True)
        return all(
            accepts(properties[key], item, root)
            if key in properties
            else extra is True or (extra is not False and accepts(extra, item, root))
            for key, item in value.items()
        )
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        return all(accepts(schema.get("items", {}), item, root) for item in value)
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value)
    return True


TESTER_FILE = {
    "schema_version": "0.3",
    "run": {"id": "r", "output_dir": "out"},
    "benchmark": {"manifest": "m.yaml", "tasks": "t.jsonl"},
    "harness": {"type": "command", "config": {"command": "true"}},
}


def test_exported_schemas_are_plain_json_with_every_reference_resolved() -> None:
    for schema in (MANIFEST.json_schema, row_json_schema(), TESTER.json_schema):
        text = json.dumps(schema)
        assert json.loads(text) == schema
        for reference in set(text.split('"#/$defs/')[1:]):
            assert reference.partition('"')[0] in schema["$defs"]


def test_every_object_of_the_exported_schemas_is_closed_except_opaque_ones() -> None:
    open_ones = set()
    for schema in (MANIFEST.json_schema, row_json_schema(), TESTER.json_schema):
        for name, node in [("", schema), *schema.get("$defs", {}).items()]:
            if node.get("type") == "object" and node.get("additionalProperties") is not False:
                open_ones.add(name)
    assert open_ones == {family.eval_model.__name__ for family in FAMILIES.values()}


def test_row_schema_names_every_family_and_no_two_models_share_a_name() -> None:
    schema = row_json_schema()
    assert [branch["properties"]["family"]["const"] for branch in schema["anyOf"]] == list(FAMILIES)
    from securebench.pack_schema import row_schema

    for family in FAMILIES.values():
        for name, node in row_schema(family).json_schema["$defs"].items():
            assert schema["$defs"][name] == node


@pytest.mark.parametrize("family", FAMILIES)
def test_row_schema_accepts_what_the_model_accepts(family: str) -> None:
    row = dict(VALID_ROWS[family])
    assert accepts(row_json_schema(), row)
    assert not accepts(row_json_schema(), row | {"extra": 1})
    assert not accepts(row_json_schema(), row | {"family": "other"})
    assert not accepts(row_json_schema(), row | {"input": {}})
    assert not accepts(row_json_schema(), row | {"eval": {}})
    assert not accepts(row_json_schema(), {key: value for key, value in row.items() if key != "id"})
    del row["family"]
    assert accepts(row_json_schema(), row), "the manifest may give the family"


@pytest.mark.parametrize(
    "schema, document, valid",
    [
        (MANIFEST, {"id": "x", "version": 1}, True),
        (MANIFEST, {"id": "x", "version": 1, "defaults": {"environment": {"image": "a", "network": {}}}}, True),
        (MANIFEST, {"id": "x", "version": 1, "asset_roots": {"public": "a"}}, True),
        (MANIFEST, {"id": "x"}, False),
        (MANIFEST, {"id": "", "version": 1}, False),
        (MANIFEST, {"id": "x", "version": "1"}, False),
        (MANIFEST, {"id": "x", "version": 1, "extra": 1}, False),
        (MANIFEST, {"id": "x", "version": 1, "defaults": {"family": "nope"}}, False),
        (MANIFEST, {"id": "x", "version": 1, "defaults": {"environment": {"imag": "a"}}}, False),
        (MANIFEST, {"id": "x", "version": 1, "defaults": {"environment": {"resources": {"pids": "a"}}}}, False),
        (TESTER, TESTER_FILE, True),
        (TESTER, TESTER_FILE | {"schema_version": "0.2"}, True),
        (TESTER, TESTER_FILE | {"budget": {"usd": 1}}, True),
        (TESTER, TESTER_FILE | {"schema_version": "0.2", "budget": {"usd": 1}}, False),
        (TESTER, TESTER_FILE | {"schema_version": "9"}, False),
        (TESTER, TESTER_FILE | {"harness": {"type": "nope"}}, False),
        (TESTER, TESTER_FILE | {"harness": {"type": "codex", "config": {}}}, False),
        (TESTER, TESTER_FILE | {"harness": {"type": "command", "config": {"command": ["a", "b"]}}}, True),
        (TESTER, TESTER_FILE | {"harness": {"type": "command", "config": {"command": []}}}, False),
        (TESTER, TESTER_FILE | {"sandbox": {"backend": "none"}}, False),
        (TESTER, TESTER_FILE | {"extra": 1}, False),
    ],
)
def test_exported_schema_and_model_agree(schema: Schema[Any], document: Any, valid: bool) -> None:
    assert accepts(schema.json_schema, document) is valid
    assert isinstance(schema.validate(document, "f", lambda _: 1), list) is not valid
