"""Strict YAML: what JSON can say, with lines, under limits; problems instead of exceptions."""

from __future__ import annotations

import time
from typing import Any

import pytest

from securebench import _yaml


def parse(text: str | bytes) -> _yaml.YamlDocument:
    return _yaml.parse(text.encode() if isinstance(text, str) else text, "f.yaml")


@pytest.mark.parametrize(
    "text, value",
    [
        ("a: 1", {"a": 1}),
        ("a: 0x1F\nb: 0o17\nc: -7\nd: +3\ne: 0777", {"a": 31, "b": 15, "c": -7, "d": 3, "e": 777}),
        ("a: 1.5\nb: 1e3\nc: -.5", {"a": 1.5, "b": 1000.0, "c": -0.5}),
        ("a: no\nb: on\nc: y", {"a": "no", "b": "on", "c": "y"}),
        ("a: true\nb: False\nc: null\nd: ~\ne:", {"a": True, "b": False, "c": None, "d": None, "e": None}),
        ("a: \"1\"\nb: 'true'", {"a": "1", "b": "true"}),
        ("a: 2024-01-02", {"a": "2024-01-02"}),
        ("a: 1:30", {"a": "1:30"}),
        ("- 1\n- [2, {b: 3}]", [1, [2, {"b": 3}]]),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}),
        ('{"json": [1, true, "x"]}', {"json": [1, True, "x"]}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: ü€😀", {"a": "ü€😀"}),
        ("---\na: 1\n...\n", {"a": 1}),
        ("just text", "just text"),
    ],
)
def test_plain_document_is_plain_data(text: str, value: Any) -> None:
    document = parse(text)
    assert document.problems == []
    assert document.value == value


@pytest.mark.parametrize(
    "text, line, field, words",
    [
        ("", 1, "", "file is empty"),
        ("\n# x\n", 1, "", "file is empty"),
        ("a: 1\nb: 2\na: 3", 3, "a", "duplicate key 'a' (first on line 1)"),
        ("a:\n  b: 1\n  b: 2", 3, "a.b", "duplicate key 'b' (first on line 2)"),
        ('a: 1\n"a": 2', 2, "a", "duplicate key"),
        ("a: &x 1", 1, "a", "anchors and aliases"),
        ("a: &x [1]\nb: *x", 1, "a", "anchors and aliases"),
        ("&x a: 1", 1, "", "keys must be plain text"),
        ("a: &x {<<: *x}", 1, "a", "anchors and aliases"),
        ("a: {<<: {b: 1}}", 1, "a", "keys must be plain text"),
        ("1: a", 1, "", "keys must be plain text"),
        ("null: a", 1, "", "keys must be plain text"),
        ("[a, b]: c", 1, "", "keys must be plain text"),
        ("? {a: b}\n: c", 1, "", "keys must be plain text"),
        ("a: .nan", 1, "a", ".nan is not allowed"),
        ("a: -.INF", 1, "a", "is not allowed"),
        ("a: 1e999", 1, "a", "only finite numbers"),
        ("a: 0x" + "f" * 5000, 1, "a", "not a number: integer with 5002 digits"),
        ("a: " + "9" * 5000, 1, "a", "not a number"),
        ("a: !!python/object:os.system {}", 1, "a", "tags are not allowed"),
        ("a: !x [1]", 1, "a", "tags are not allowed"),
        ("a: !!set {b}", 1, "a", "tags are not allowed"),
        ("a: !x 1", 1, "a", "is not allowed"),
        ("a: !!binary eA==", 1, "a", "is not allowed"),
        ("%YAML 1.1\n---\na: yes", 3, "a", "is not allowed"),
        ("a: b: c", 1, "", "not YAML"),
        ("a: [1", 1, "", "not YAML"),
        ("a: 'x", 1, "", "not YAML"),
        ("a: 1\n b: 2", 2, "", "not YAML"),
        ("\ta: 1", 1, "", "not YAML"),
        ("a: *nothing", 1, "", "not YAML"),
        ("a: 1\n---\nb: 2", 2, "", "another document"),
        ("[" * 50 + "]" * 50, 1, "", "nested more than 40 levels deep"),
        ("- " * 1000, 1, "", "nested too deeply"),
        ("a: x\0y", 1, "", "NUL"),
    ],
)
def test_anything_else_is_a_problem_with_its_line(text: str, line: int, field: str, words: str) -> None:
    first = parse(text).problems[0]
    assert (first.file, first.line, first.field) == ("f.yaml", line, field)
    assert words in first.message


def test_bad_encoding_names_line_and_byte() -> None:
    [problem] = parse(b"a: 1\nb: \xff").problems
    assert (problem.line, problem.message) == (2, "not UTF-8: byte 0xff")


def test_every_problem_of_the_text_is_reported_and_the_rest_is_kept() -> None:
    document = parse("a: .nan\nb: 1\nb: 2\nc: &x 1\nd: ok")
    assert [(problem.line, problem.field) for problem in document.problems] == [(1, "a"), (3, "b"), (4, "c")]
    assert document.value == {"a": None, "b": 1, "c": None, "d": "ok"}


def test_line_of_a_place_that_is_not_there_is_that_of_the_nearest_one() -> None:
    document = parse("x: 1\na:\n  b:\n    - c: 1\n    - d: 2")
    assert document.line(("a", "b", 1, "d")) == 5
    assert document.line(("a", "b", 1, "zzz")) == 5
    assert document.line(("a", "zzz")) == 2
    assert document.line(("zzz",)) == 1
    assert document.line(()) == 1


def test_number_of_problems_is_bounded() -> None:
    assert len(parse("a: 1\n" * 500).problems) == _yaml.MAX_DOCUMENT_PROBLEMS


N = _yaml.MAX_BYTES
HOSTILE = {
    "too large": "#" * (N + 1),
    "brackets": "[" * N,
    "braces": "{a: " * (N // 4),
    "dashes": "- " * (N // 2),
    "question marks": "?\n" * (N // 2),
    "long flow list": "[" + "1," * (N // 2 - 1) + "]",
    "many keys": "".join(f"k{i}: 1\n" for i in range(20_000)),
    "one key again and again": "a: 1\n" * (N // 5),
    "anchors": "".join(f"- &a{i} x\n" for i in range(20_000)),
    "aliases": "- &a x\n" + "- *a\n" * 40_000,
    "billion laughs": "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 99)),
    "tags": "- !x y\n" * (N // 7),
    "long plain text": "a: " + "x " * (N // 2 - 5),
    "many lines of text": "a: x\n" + "  y\n" * (N // 4 - 5),
    "long quoted text": 'a: "' + "\\n" * (N // 2 - 5),
    "blank lines in quotes": 'a: "' + "\n" * (N - 10) + '"',
    "block text": "a: |\n" + "  x\n" * (N // 4 - 5),
    "comments": "a: 1\n" + "# c\n" * (N // 4 - 5),
    "blank lines": "a: 1\n" + "\n" * (N - 9),
    "long number": "a: " + "9" * (N - 9),
    "long hexadecimal number": "a: 0x" + "f" * (N - 9),
    "long fraction": "a: 0." + "9" * (N - 9),
    "directives": "".join(f"%TAG !a{i}! b\n" for i in range(15_000)),
    "colons": ":" * N,
    "spaces": " " * N,
    "carriage returns": "\r" * N,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_file_is_answered_in_seconds(text: str) -> None:
    started = time.process_time()
    document = parse(text)
    assert time.process_time() - started < 5
    assert document.problems or document.value is not None
    assert all(len(str(problem)) < 1000 for problem in document.problems)


@pytest.mark.parametrize(
    "loc, text",
    [
        ((), ""),
        (("a",), "a"),
        (("a", 0, "b-c", "d_e"), "a[0].b-c.d_e"),
        ((3, "a"), "[3].a"),
        (("a b",), '["a b"]'),
        (("x", "a.b\n\x1b", 1), 'x["a.b\\n\\u001b"][1]'),
        (("k" * 200,), f'["{"k" * 80}"]'),
        (("",), '[""]'),
    ],
)
def test_place_is_one_short_line(loc: _yaml.Loc, text: str) -> None:
    assert _yaml.dotted(loc) == text
