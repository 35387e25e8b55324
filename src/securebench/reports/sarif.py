"""SARIF 2.1.0, which code hosts and editors read: one run of a tool, one rule for each kind of thing it looked at,
one result for each thing.

What is in order is there too, as results of the kind `pass`: a scan that lists only what is wrong does not show what
it looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import quote

from securebench._text import visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_PLACE = "\0"  # of the results; in no other text, where it would be written out
_RESULTS = f'"results": {json.dumps(_PLACE)}'
_ESCAPED = str.maketrans({"\\": r"\\", "[": r"\[", "]": r"\]", "{": "{{", "}": "}}"})
Kind = Literal["pass", "fail", "notApplicable"]
Level = Literal["none", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Result:
    """One thing. `name` is its full name; `path` and `line` say where, relative to what was looked at. `same_as` are
    the words by which the same thing is known the next time, whatever is said of it then."""

    rule: str
    title: str  # of the rule
    kind: Kind
    level: Level
    message: str
    name: str
    same_as: tuple[str, ...]
    path: str | None = None
    line: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """What was looked at. `texts` say more of a rule than its title; strings of `properties` are shown as everything
    is."""

    title: str
    time: float | None
    results: Sequence[Result]
    texts: Mapping[str, str]
    properties: Mapping[str, Any]
    tags: tuple[str, ...] = ("security",)

    def as_json(self) -> dict[str, Any]:
        """The whole of it."""
        log = self._frame()
        log["runs"][0]["results"] = list(self._results())
        return log

    def pieces(self) -> Iterator[str]:
        """Its text, for logs that are not to be held at once."""
        before, _, after = json.dumps(self._frame()).partition(_RESULTS)
        yield f'{before}"results": [\n'
        for number, result in enumerate(self._results()):
            yield f"{',' if number else ''}{json.dumps(result)}\n"
        yield f"]{after}\n"

    def _frame(self) -> dict[str, Any]:
        titles = {one.rule: one.title for one in self.results}
        driver = {
            "name": "SecureBench",
            "semanticVersion": version("securebench"),
            "informationUri": "https://securebench.org",
            "rules": [_rule(rule, title, self.texts.get(rule, ""), self.tags) for rule, title in titles.items()],
        }
        run = {
            "tool": {"driver": driver},
            "automationDetails": {"id": f"{plain(self.title)}/"},
            "invocations": [{"executionSuccessful": True} | _began(self.time)],
            "columnKind": "unicodeCodePoints",
            "results": _PLACE,
            "properties": _shown(self.properties),
        }
        return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}

    def _results(self) -> Iterator[dict[str, Any]]:
        indexes = {rule: index for index, rule in enumerate(dict.fromkeys(one.rule for one in self.results))}
        return (_result(one, indexes[one.rule]) for one in self.results)


def _began(time: float | None) -> dict[str, str]:
    return {} if time is None else {"startTimeUtc": datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


def _rule(rule: str, title: str, text: str, tags: tuple[str, ...]) -> dict[str, Any]:
    described = {"fullDescription": {"text": said(text)}} if text else {}
    return {
        "id": plain(rule),
        "shortDescription": {"text": said(title)},
        **described,
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": list(tags)},
    }


def _result(one: Result, index: int) -> dict[str, Any]:
    same = hashlib.sha256("\0".join(one.same_as).encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "ruleId": plain(one.rule),
        "ruleIndex": index,
        "kind": one.kind,
        "level": one.level,
        "message": {"text": said(one.message)},
        "locations": [_location(one)],
        "partialFingerprints": {"securebench/v1": same},
        "properties": _shown(one.properties),
    }


def _location(one: Result) -> dict[str, Any]:
    logical = [{"fullyQualifiedName": plain(one.name), "kind": "member"}]
    if one.path is None:
        return {"logicalLocations": logical}
    artifact = {"uri": quote(one.path.encode("utf-8", "surrogatepass"), safe="/")}
    region = {"startLine": max(1, one.line)}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}, "logicalLocations": logical}


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {plain(key): _shown(part) for key, part in value.items()}
    return plain(value) if isinstance(value, str) else value


def plain(text: str) -> str:
    return visible(text, keep="\n")


def said(text: str) -> str:
    """A message, in which brackets make links and braces are filled in unless they are escaped."""
    return plain(text).translate(_ESCAPED)
