"""Closed, typed models for everything a person writes, and their errors in the author's words.

A file becomes plain data first (`_json`, `_yaml`), then a frozen model. All problems of a value are collected;
messages name the place and never repeat a value that could be a secret of the pack."""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from securebench import _json
from securebench._paths import relative_path
from securebench._yaml import Loc, YamlDocument, dotted
from securebench.errors import Problem

MAX_PROBLEMS = 1000  # of one value; nobody reads more, and a hostile value could have millions

_COMPARED = 100  # names on either side of a misspelt one, in their order

T = TypeVar("T")
Locate = Callable[[Loc], int]


class ClosedModel(BaseModel):
    """Unknown keys, wrong types and non-finite numbers are errors; instances cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, hide_input_in_errors=True)


def _check_relative(text: str) -> str:
    return str(relative_path(text))


RelativePath = Annotated[str, AfterValidator(_check_relative)]
"""A path that stays beneath its root; see `_paths.relative_path`."""


class FileRef(ClosedModel):
    """A file or directory of the pack: where it lies beneath its asset root and where it shall appear."""

    path: RelativePath
    mount: RelativePath | None = None
    read_only: bool | None = None


class Schema(Generic[T]):
    """One closed model, checked and exported: the JSON Schema people get is made from what checks their files."""

    def __init__(self, type_: Any) -> None:
        self.adapter: TypeAdapter[T] = TypeAdapter(type_)

    @cached_property
    def json_schema(self) -> dict[str, Any]:
        return self.adapter.json_schema()

    def check(self, document: YamlDocument) -> T | list[Problem]:
        """The typed value of a document, or every problem of its text and its content, each place once."""
        if document.value is None and document.problems:
            return document.problems
        result = self.validate(document.value, document.file, document.line)
        if isinstance(result, list):
            known = {problem.field for problem in document.problems}
            return document.problems + [problem for problem in result if problem.field not in known]
        return document.problems or result

    def validate(self, value: Any, file: str, locate: Locate, at: Loc = ()) -> T | list[Problem]:
        """The typed value, or every problem with it. `at` is where `value` stands inside its document."""
        try:
            return self.adapter.validate_json(_json.dumps(value))
        except ValidationError as error:
            details = error.errors(include_url=False)
        except RecursionError:
            return [Problem(file, locate(at), dotted(at), "nested too deeply")]
        except (TypeError, ValueError):
            return [Problem(file, locate(at), dotted(at), "expected plain data with finite numbers")]
        details = _without_echoes(details[:MAX_PROBLEMS])
        return merged(self._problem(detail, value, file, locate, at) for detail in details)

    def _problem(self, detail: ErrorDetails, value: Any, file: str, locate: Locate, at: Loc) -> Problem:
        loc = _data_loc(detail["loc"], value, keep_last=detail["type"] in {"missing", "extra_forbidden"})
        message = _message(detail, loc)
        if detail["type"] == "extra_forbidden":
            message += suggest(str(loc[-1]), self.keys_at(loc[:-1]))
        return Problem(file, locate((*at, *loc)), dotted((*at, *loc)), message)

    def keys_at(self, loc: Loc) -> set[str]:
        """The keys an author may write at a place, whichever member of a union it is."""
        nodes = self._alternatives([self.json_schema])
        for part in loc:
            children = [
                node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
                for node in nodes
            ]
            nodes = self._alternatives(children)
        return {key for node in nodes for key in node.get("properties", {})}

    def _alternatives(self, nodes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = []
        for reference in nodes:
            name = reference.get("$ref", "").rpartition("/")[2]
            node = self.json_schema["$defs"][name] if name else reference
            members = node.get("anyOf", []) + node.get("oneOf", [])
            result += self._alternatives(members) if members else [node]
        return result


def _without_echoes(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without "too few items" where items are there but wrong: only the right ones were counted."""
    inside = {detail["loc"][:depth] for detail in details for depth in range(len(detail["loc"]))}
    return [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inside]


def _data_loc(loc: tuple[int | str, ...], value: Any, keep_last: bool) -> Loc:
    """Pydantic's location without the names of union members, which are not in the author's file."""
    kept: list[int | str] = []
    for index, part in enumerate(loc):
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            if not (keep_last and index == len(loc) - 1):
                continue
        kept.append(part)
    return tuple(kept)


_FOUND = {dict: "an object", list: "a list", str: "text", bool: "true/false", int: "a number", float: "a number"}


def found(value: Any) -> str:
    """What kind of value stands there, without repeating it."""
    return "nothing (null)" if value is None else _FOUND.get(type(value), type(value).__name__)


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
}


def _message(detail: ErrorDetails, loc: Loc) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "json_invalid":  # strict JSON that the model's own parser still refuses
        return "nested too deeply" if "recursion" in detail["msg"] else "a text holds half a character (lone surrogate)"
    if kind == "missing":
        return "required key is missing"
    if kind == "extra_forbidden":
        return f"unknown key {str(loc[-1])[:80]!r}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {found(detail['input'])}"
    if kind == "union_tag_not_found":
        return f"required key {context['discriminator']} is missing"
    if kind == "union_tag_invalid":
        return f"expected one of {context['expected_tags']} as its kind"
    if kind in {"literal_error", "enum"}:
        return f"expected one of {context['expected']}, found {found(detail['input'])}"
    if kind in {"too_short", "too_long"}:
        bound = "at least" if kind == "too_short" else "at most"
        number = context.get("min_length", context.get("max_length"))
        return f"expected {bound} {number} items, found {context['actual_length']}"
    if kind == "string_too_short":
        return "must not be empty"
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return message if kind == "value_error" else f"{message}, found {found(detail['input'])}"


def merged(problems: Iterable[Problem]) -> list[Problem]:
    """One problem a place: `expected a, found x` and `expected b, found x` become `expected a or b, found x`."""
    result: dict[tuple[str, int, str], Problem] = {}
    for problem in problems:
        place = (problem.file, problem.line, problem.field)
        earlier = result.get(place)
        if earlier is None:
            result[place] = problem
        elif problem.message.startswith("expected ") and earlier.message.startswith("expected "):
            first, _, tail = earlier.message.partition(", found")
            also = problem.message.removeprefix("expected ").partition(", found")[0]
            result[place] = replace(earlier, message=f"{first} or {also}, found{tail}")
        else:
            result[(*place[:2], f"{problem.field}\0{len(result)}")] = problem
    return list(result.values())


def suggest(key: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or nothing when nothing known comes near. Of many those are compared that begin alike."""
    names = sorted(set(known))
    at = bisect.bisect_left(names, key)
    if names[at : at + 1] == [key]:
        return " (it belongs to another version or kind of this section)"
    if alike := next((name for name in names if name.casefold() == key.casefold()), None):
        return f" (did you mean {alike!r}?)"
    near = names[max(0, at - _COMPARED) : at + _COMPARED]
    close = difflib.get_close_matches(key, near, n=1, cutoff=0.7)
    return f" (did you mean {close[0]!r}?)" if close else ""
