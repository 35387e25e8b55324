"""Strict YAML 1.2 → plain JSON values, with the line of every key and every problem at once.

Only what JSON can say is accepted: no anchors or aliases (they make small files huge), no tags, no merge
keys, string keys only, finite numbers only."""

from __future__ import annotations

import json
import math
import re
import warnings
from dataclasses import dataclass, field
from typing import Any

from securebench._json import MAX_DIGITS, Json
from securebench.errors import Problem

MAX_BYTES = 256 * 1024
MAX_TOKENS = 10_000  # the pure parser needs about 100 µs for each
MAX_DEPTH = 40
MAX_DOCUMENT_PROBLEMS = 50
_TAG = "tag:yaml.org,2002:"

Loc = tuple[str | int, ...]


@dataclass(slots=True)
class YamlDocument:
    """A parsed file: its value (None when it could not be parsed), where things stand, what is wrong."""

    file: str
    value: Json = None
    lines: dict[Loc, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, loc: Loc) -> int:
        """The line of the deepest known part of `loc`."""
        while loc not in self.lines and loc:
            loc = loc[:-1]
        return self.lines.get(loc, 1)


def parse(data: bytes, file: str) -> YamlDocument:
    """Parse one YAML document. Never raises for bad input: problems are in the result."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    document = YamlDocument(file)

    def complain(line: int, message: str, loc: Loc = ()) -> None:
        if len(document.problems) < MAX_DOCUMENT_PROBLEMS:
            document.problems.append(Problem(file, line, dotted(loc), message))

    if len(data) > MAX_BYTES:
        complain(0, f"file has {len(data)} bytes; at most {MAX_BYTES} are allowed")
        return document
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        complain(data.count(b"\n", 0, error.start) + 1, f"not UTF-8: byte 0x{data[error.start]:02x}")
        return document
    if "\0" in text:
        complain(text.count("\n", 0, text.index("\0")) + 1, "contains a NUL character")
        return document
    try:
        node = _compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        complain(mark.line + 1 if mark else 1, f"not YAML: {_brief(error.problem or error.context)}")
        return document
    except YAMLError as error:
        complain(1, f"not YAML: {_brief(error)}")
        return document
    except RecursionError:
        complain(1, "nested too deeply")
        return document
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, AssertionError) as error:
        # The pure parser leaks these for some malformed bytes; to the author they are all "not YAML".
        complain(1, f"not YAML: {_brief(error) or type(error).__name__}")
        return document
    if node is None:
        complain(1, "file is empty")
        return document
    document.value = _Reader(document, complain).read(node, (), 0)
    return document


def dotted(loc: Loc) -> str:
    """`('assets', 0, 'path')` → `assets[0].path`; an odd key is quoted and cut, so the result is one short line."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif re.fullmatch(r"[\w-]{1,80}", part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part[:80])}]"
    return text


def _compose(text: str) -> Any:
    """The node graph of the only document, or None. Size and depth are bounded in the scanner: it is slow, and it
    looks ahead in quadratic time before the parser gets to see how deep the nesting is."""
    from ruamel.yaml import YAML
    from ruamel.yaml.scanner import Scanner, ScannerError

    class BoundedScanner(Scanner):
        fetched = 0

        def fetch_more_tokens(self) -> Any:
            self.fetched += 1
            if self.fetched > MAX_TOKENS:
                raise ScannerError(None, None, "too many keys and values in one file", self.reader.get_mark())
            if len(self.flow_context) > MAX_DEPTH:
                message = f"nested more than {MAX_DEPTH} levels deep"
                raise ScannerError(None, None, message, self.reader.get_mark())
            return super().fetch_more_tokens()

    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = BoundedScanner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the library merely warns about is refused or harmless here
        return yaml.compose(text)


def _brief(error: object) -> str:
    return " ".join(str(error).split())[:200]


class _Reader:
    def __init__(self, document: YamlDocument, complain: Any) -> None:
        self.document = document
        self.complain = complain
        self.seen: set[int] = set()

    def read(self, node: Any, loc: Loc, depth: int) -> Json:
        line = node.start_mark.line + 1
        self.document.lines.setdefault(loc, line)
        if id(node) in self.seen or getattr(node, "anchor", None):
            self.complain(line, "anchors and aliases are not allowed; write the value out", loc)
            return None
        self.seen.add(id(node))
        if depth > MAX_DEPTH:
            self.complain(line, f"nested more than {MAX_DEPTH} levels deep", loc)
            return None
        kind = type(node).__name__
        if kind != "ScalarNode" and str(node.tag) not in {f"{_TAG}map", f"{_TAG}seq"}:
            self.complain(line, "tags are not allowed; write a plain value", loc)
            return None
        if kind == "MappingNode":
            return self.mapping(node, loc, depth)
        if kind == "SequenceNode":
            return [self.read(child, (*loc, index), depth + 1) for index, child in enumerate(node.value)]
        return self.scalar(str(node.tag), node.value, loc, line)

    def mapping(self, node: Any, loc: Loc, depth: int) -> dict[str, Json]:
        result: dict[str, Json] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key, str) or str(key_node.tag) != f"{_TAG}str" or getattr(key_node, "anchor", None):
                self.complain(line, "keys must be plain text; quote this key", loc)
                continue
            place = (*loc, key)
            if key in result:
                self.complain(line, f"duplicate key {key[:80]!r} (first on line {self.document.lines[place]})", place)
                continue
            self.document.lines[place] = line
            result[key] = self.read(value_node, place, depth + 1)
        return result

    def scalar(self, tag: str, text: str, loc: Loc, line: int) -> Json:
        try:
            match tag.removeprefix(_TAG):
                case "str" | "timestamp":
                    return text
                case "null":
                    return None
                case "bool" if text.lower() in {"true", "false"}:
                    return text.lower() == "true"
                case "int":
                    return _int(text)
                case "float":
                    value = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
                    if math.isfinite(value):
                        return value
                    self.complain(line, f"{text[:20]} is not allowed; only finite numbers are", loc)
                    return None
        except ValueError as error:
            self.complain(line, f"not a number: {_brief(error)}", loc)
            return None
        self.complain(
            line, f"{tag.removeprefix(_TAG)[:20]} value {text[:20]!r} is not allowed; write a plain value", loc
        )
        return None


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"integer with {len(text)} digits; at most {MAX_DIGITS} are allowed")
    plain = text.replace("_", "").lower()
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    for prefix, base in (("0x", 16), ("0o", 8), ("0b", 2)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits)
