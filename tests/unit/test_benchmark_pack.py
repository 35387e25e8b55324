"""What a pack author gets for every way a pack can be wrong: file, line, field, and words to act on."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.packs import FILES, MANIFEST, REMOVED, VALID_ROWS, Row, changed, load, row, tasks, write_pack

from securebench import _fs, _yaml, benchmark_pack
from securebench._canonical import digest_value
from securebench.benchmark_pack import find_pack
from securebench.errors import IntegrityError, PackError
from securebench.families.registry import FAMILIES

CHOICE, SHORT, FREE = row("multiple_choice"), row("short_answer"), row("free_response")
CODE, PATCH, TERMINAL = row("code_completion"), row("repo_patch"), row("terminal_task")


def refused(directory: Path) -> PackError:
    with pytest.raises(PackError) as caught:
        load(directory)
    return caught.value


def problems(directory: Path, file: str = "tasks.jsonl") -> list[tuple[int, str, str]]:
    found = refused(directory).problems
    assert {problem.file for problem in found} == {str(directory / file)}
    return [(problem.line, problem.field, problem.message) for problem in found]


def line_of(source: Row) -> str:
    return json.dumps(source)


def test_pack_with_all_families_loads_and_reads_back(tmp_path: Path) -> None:
    pack = load(write_pack(tmp_path, VALID_ROWS.values()))
    assert pack.ids == tuple(source["id"] for source in VALID_ROWS.values())
    assert [entry.row.family for entry in pack] == list(FAMILIES)
    assert [entry.line for entry in pack] == [1, 2, 3, 4, 5, 6]
    assert [entry.row.id for entry in pack[1:3]] == ["short-1", "free-1"]
    assert pack[-1].row.id == "terminal-1"


BROKEN_ROWS: list[tuple[str, Any, str, str]] = [
    # what, the row (object or text), field, words of the message
    ("unknown key", changed(CHOICE, "inputs", {}), "inputs", "unknown key 'inputs' (did you mean 'input'?)"),
    ("unknown key in input", changed(CHOICE, "input.choises", []), "input.choises", "(did you mean 'choices'?)"),
    ("unknown key far from any", changed(CHOICE, "zzz", 1), "zzz", "unknown key 'zzz'"),
    (
        "unknown key in assets",
        changed(CHOICE, "assets", [{"path": "data.txt", "readonly": True}]),
        "assets[0].readonly",
        "(did you mean 'read_only'?)",
    ),
    (
        "unknown key in environment",
        changed(CHOICE, "environment", {"timeout_secs": 3}),
        "environment.timeout_secs",
        "(did you mean 'timeout_seconds'?)",
    ),
    (
        "unknown key in resources",
        changed(CHOICE, "environment", {"resources": {"memmory": "1g"}}),
        "environment.resources.memmory",
        "(did you mean 'memory'?)",
    ),
    (
        "unknown key in network",
        changed(CHOICE, "environment", {"network": {"allowed_domain": []}}),
        "environment.network.allowed_domain",
        "(did you mean 'allowed_domains'?)",
    ),
    (
        "unknown key in a private object",
        changed(FREE, "eval.rubric.accepted_answer", []),
        "eval.rubric.accepted_answer",
        "(did you mean 'accepted_answers'?)",
    ),
    (
        "unknown key in a case",
        changed(CODE, "eval.tests.cases.0.arg", []),
        "eval.tests.cases[0].arg",
        "(did you mean 'args'?)",
    ),
    (
        "unknown key in a suite",
        changed(PATCH, "eval.tests.fail_to_pas", []),
        "eval.tests.fail_to_pas",
        "(did you mean 'fail_to_pass'?)",
    ),
    (
        "unknown key in a checker",
        changed(TERMINAL, "eval.checker.timeout_second", 1),
        "eval.checker.timeout_second",
        "(did you mean 'timeout_seconds'?)",
    ),
    ("near miss of a private key", changed(CHOICE, "eval.answers", "B"), "eval.answers", "(did you mean 'answer'?)"),
    ("duplicate JSON key", line_of(CHOICE)[:-1] + ', "id": "x"}', "", "duplicate key 'id'"),
    ("duplicate nested key", '{"id": "x", "eval": {"a": 1, "a": 2}}', "", "duplicate key 'a'"),
    ("id of the wrong type", changed(CHOICE, "id", 7), "id", "expected text, found a number"),
    ("empty id", changed(CHOICE, "id", ""), "id", "must not be empty"),
    ("id with a line break", changed(CHOICE, "id", "a\nb"), "id", "control or invisible characters"),
    ("id with an override", changed(CHOICE, "id", "a\u202eb"), "id", "control or invisible characters"),
    ("no id", changed(CHOICE, "id", REMOVED), "id", "required key is missing"),
    ("no family", changed(CHOICE, "family", REMOVED), "family", "expected one of multiple_choice, short_answer"),
    ("unknown family", changed(CHOICE, "family", "short_answers"), "family", "(did you mean 'short_answer'?)"),
    ("family of the wrong type", changed(CHOICE, "family", ["multiple_choice"]), "family", "expected one of"),
    ("no input", changed(CHOICE, "input", REMOVED), "input", "required key is missing"),
    ("input is a list", changed(CHOICE, "input", []), "input", "expected an object, found a list"),
    ("eval is null", changed(CHOICE, "eval", None), "eval", "expected an object, found nothing (null)"),
    ("metadata is text", changed(CHOICE, "metadata", "x"), "metadata", "expected an object, found text"),
    ("NaN", line_of(CHOICE).replace('"B"', "NaN"), "", "NaN is not allowed"),
    ("Infinity", line_of(CHOICE).replace('"B"', "-Infinity"), "", "-Infinity is not allowed"),
    ("1e999", line_of(SHORT).replace("0.5", "1e999"), "", "out of range"),
    ("integer of 5000 digits", line_of(SHORT).replace("0.5", "9" * 5000), "", "5000 digits; at most 4000"),
    ("integer beyond floats", changed(SHORT, "eval.tolerance", 10**400), "eval.tolerance", "finite number"),
    ("not JSON", line_of(CHOICE)[:-1], "", "not JSON"),
    ("not an object", "[1, 2]", "", "expected one JSON object per line"),
    ("two objects", "{} {}", "", "not JSON: Extra data"),
    ("bad encoding", b'{"id": "\xff"}', "", "not UTF-8: byte 0xff at offset 8"),
    ("byte order mark", b"\xef\xbb\xbf" + line_of(CHOICE).encode(), "", "byte order mark"),
    ("UTF-16", line_of(CHOICE).encode("utf-16"), "", "not UTF-8"),
    ("lone surrogate", changed(CHOICE, "input.question", "\ud800"), "", "lone surrogate"),
    ("nested too deeply", '{"a":' * 5000, "", "nested too deeply"),
    (
        "nested deeply in a value",
        line_of(CHOICE)[:-1] + ', "metadata": {"a": ' + "[" * 300 + "]" * 300 + "}}",
        "",
        "deep",
    ),
    ("path with ..", changed(CHOICE, "assets", [{"path": "../x"}]), "assets[0].path", "contains '..'"),
    ("path with .. inside", changed(CHOICE, "assets", [{"path": "a/../../x"}]), "assets[0].path", "contains '..'"),
    ("absolute path", changed(CHOICE, "assets", [{"path": "/etc/passwd"}]), "assets[0].path", "absolute"),
    ("backslash", changed(CHOICE, "assets", [{"path": "a\\b"}]), "assets[0].path", "backslash"),
    ("NUL", changed(CHOICE, "assets", [{"path": "a\0b"}]), "assets[0].path", "control or invisible"),
    ("path is empty", changed(CHOICE, "assets", [{"path": ""}]), "assets[0].path", "path is empty"),
    ("mount with ..", changed(CHOICE, "assets", [{"path": "data.txt", "mount": "a/../b"}]), "assets[0].mount", "'..'"),
    (
        "private path with ..",
        changed(FREE, "eval.reference_answer", {"path": "../x"}),
        "eval.reference_answer.path",
        "..",
    ),
    (
        "undeclared private path with ..",
        changed(FREE, "eval.notes", {"path": "../../etc/passwd"}),
        "eval.notes.path",
        "contains '..'",
    ),
    ("missing asset", changed(CHOICE, "assets", [{"path": "none.txt"}]), "assets[0].path", "none.txt does not exist"),
    ("missing private file", changed(FREE, "eval.notes", {"path": "none"}), "eval.notes.path", "none does not exist"),
    (
        "missing file in a list",
        changed(TERMINAL, "eval.test_files", [{"path": "check.py"}, {"path": "x"}]),
        "eval.test_files[1].path",
        "x does not exist",
    ),
    ("asset through a file", changed(CHOICE, "assets", [{"path": "data.txt/x"}]), "assets[0].path", "not a directory"),
    ("name in both lanes", changed(SHORT, "eval.question", "x"), "eval.question", "both input and eval"),
    ("private key named assets", changed(CHOICE, "eval.assets", {"path": "secret.txt"}), "eval.assets", "public files"),
    ("private key with a slash", changed(CHOICE, "eval", {"answer": "B", "../x": 1}), 'eval["../x"]', "'..'"),
    ("private key of two parts", changed(CHOICE, "eval", {"answer": "B", "a/b": 1}), 'eval["a/b"]', "contains '/'"),
    (
        "too many private keys",
        changed(CHOICE, "eval", {f"k{i}": 1 for i in range(1000)} | {"answer": "B"}),
        "eval",
        "1001",
    ),
    ("private key with NUL", changed(CHOICE, "eval", {"answer": "B", "x\0": 1}), 'eval["x\\u0000"]', "control"),
    (
        "private keys that differ in case",
        changed(CHOICE, "eval", {"answer": "B", "Notes": 1, "notes": 2}),
        "eval",
        "collide",
    ),
    (
        "private mounts that collide",
        changed(TERMINAL, "eval.run_tests", {"path": "secret.txt", "mount": "check.py"}),
        "eval",
        "mounts check.py and check.py collide",
    ),
    (
        "denied mount",
        changed(CHOICE, "assets", [{"path": "data.txt", "mount": "Ground_Truth/x"}]),
        "assets[0].mount",
        "/ground_truth",
    ),
    ("denied path as mount", changed(CHOICE, "assets", [{"path": "eval/x"}]), "assets[0].mount", "/eval"),
    (
        "framework mount",
        changed(CHOICE, "assets", [{"path": "data.txt", "mount": "securebench"}]),
        "assets[0].mount",
        "belongs to the framework",
    ),
    (
        "task.json mount",
        changed(CHOICE, "assets", [{"path": "data.txt", "mount": "TASK.json"}]),
        "assets[0].mount",
        "task.json belongs",
    ),
    ("equal mounts", changed(CHOICE, "assets", [{"path": "data.txt"}] * 2), "assets", "collide"),
    (
        "mounts that differ in case",
        changed(CHOICE, "assets", [{"path": "data.txt", "mount": "A"}, {"path": "tree", "mount": "a"}]),
        "assets",
        "mounts A and a collide",
    ),
    (
        "mounts that differ in normal form",
        changed(
            CHOICE,
            "assets",
            [{"path": "data.txt", "mount": unicodedata.normalize(form, "é")} for form in ("NFC", "NFD")],
        ),
        "assets",
        "collide",
    ),
    (
        "mount inside another",
        changed(CHOICE, "assets", [{"path": "tree"}, {"path": "data.txt", "mount": "Tree/x"}]),
        "assets",
        "collide",
    ),
    ("too few choices", changed(CHOICE, "input.choices", ["a"]), "input.choices", "at least 2 items, found 1"),
    ("too many choices", changed(CHOICE, "input.choices", [str(i) for i in range(27)]), "input.choices", "at most 26"),
    ("equal choices", changed(CHOICE, "input.choices", ["a", "a"]), "input.choices", "two choices are the same"),
    ("answer names no choice", changed(CHOICE, "eval.answer", "Z"), "eval.answer", "neither a letter"),
    ("no accepted answer", changed(SHORT, "eval.accepted_answers", []), "eval.accepted_answers", "at least 1 items"),
    ("negative tolerance", changed(SHORT, "eval.tolerance", -1), "eval.tolerance", "greater than or equal to 0"),
    ("unknown rubric", changed(FREE, "eval.rubric.type", "magic"), "eval.rubric", "'contains_any', 'judge'"),
    ("rubric without type", changed(FREE, "eval.rubric", {}), "eval.rubric", "'type' is missing"),
    ("no tests", changed(CODE, "eval.tests", REMOVED), "eval.tests", "required key is missing"),
    ("unknown tests", changed(CODE, "eval.tests", {"source": "magic"}), "eval.tests", "'inline', 'cases', 'io'"),
    (
        "case with two outcomes",
        changed(CODE, "eval.tests.cases.0.raises", "E"),
        "eval.tests.cases[0]",
        "exactly one of 'expected', 'raises' and 'predicate'",
    ),
    ("entry point is no name", changed(CODE, "input.entry_point", "a b"), "input.entry_point", "pattern"),
    ("no test ids", changed(PATCH, "eval.tests.fail_to_pass", []), "eval.tests.fail_to_pass", "at least 1"),
    (
        "empty command",
        changed(PATCH, "eval.tests", {"source": "command", "command": []}),
        "eval.tests.command",
        "at least 1",
    ),
    (
        "NUL in a command",
        changed(PATCH, "eval.tests", {"source": "command", "command": ["a\0"]}),
        "eval.tests.command[0]",
        "NUL",
    ),
    ("no checker", changed(TERMINAL, "eval.checker", REMOVED), "eval.checker", "required key is missing"),
    ("checker outside", changed(TERMINAL, "eval.checker.path", "/bin/sh"), "eval.checker.path", "absolute"),
    ("relative workdir", changed(CHOICE, "environment", {"workdir": "x"}), "environment.workdir", "absolute path"),
    (
        "workdir is the root",
        changed(CHOICE, "environment", {"workdir": "//"}),
        "environment.workdir",
        "path is absolute",
    ),
    ("workdir with ..", changed(CHOICE, "environment", {"workdir": "/a/../b"}), "environment.workdir", "'..'"),
    ("image that is a flag", changed(CHOICE, "environment", {"image": "--privileged"}), "environment.image", "image"),
    (
        "no time",
        changed(CHOICE, "environment", {"timeout_seconds": 0}),
        "environment.timeout_seconds",
        "greater than 0",
    ),
    (
        "time as text",
        changed(CHOICE, "environment", {"timeout_seconds": "1"}),
        "environment.timeout_seconds",
        "expected a number, found text",
    ),
    (
        "memory of no size",
        changed(CHOICE, "environment", {"resources": {"memory": "lots"}}),
        "environment.resources.memory",
        "such as 512m",
    ),
    (
        "memory without end",
        changed(CHOICE, "environment", {"resources": {"memory": "999999999999999t"}}),
        "environment.resources.memory",
        "at most 1024t",
    ),
    (
        "address as domain",
        changed(CHOICE, "environment", {"network": {"allowed_domains": ["10.0.0.1"]}}),
        "environment.network.allowed_domains[0]",
        "exact, lower-case host name",
    ),
    (
        "wildcard domain",
        changed(CHOICE, "environment", {"network": {"allowed_domains": ["*.example.com"]}}),
        "environment.network.allowed_domains[0]",
        "exact, lower-case host name",
    ),
]


@pytest.mark.parametrize("broken, field, words", [case[1:] for case in BROKEN_ROWS], ids=[c[0] for c in BROKEN_ROWS])
def test_broken_row_is_refused_with_its_line_and_field(tmp_path: Path, broken: Any, field: str, words: str) -> None:
    write_pack(tmp_path, [row(id="fine"), "", broken, row(id="fine-too")])
    [(line, found_field, message)] = problems(tmp_path)
    assert (line, found_field) == (3, field)
    assert words in message


MANIFESTS: list[tuple[str, Any, int, str, str]] = [
    # what, the text, line, field, words of the message
    ("empty", "", 1, "", "file is empty"),
    ("only a comment", "# nothing\n", 1, "", "file is empty"),
    ("null", "~\n", 1, "", "expected an object, found nothing"),
    ("a list", "- id\n", 1, "", "expected an object, found a list"),
    ("unknown key", MANIFEST + "asset_root: {}\n", 3, "asset_root", "(did you mean 'asset_roots'?)"),
    (
        "unknown nested key",
        MANIFEST + "asset_roots:\n  publik: x\n",
        4,
        "asset_roots.publik",
        "(did you mean 'public'?)",
    ),
    ("duplicate key", MANIFEST + "id: other\n", 3, "id", "duplicate key 'id' (first on line 1)"),
    (
        "duplicate nested key",
        MANIFEST + "asset_roots:\n  eval: a\n  eval: b\n",
        5,
        "asset_roots.eval",
        "first on line 4",
    ),
    ("no version", "id: x\n", 1, "version", "required key is missing"),
    ("version as text", 'id: x\nversion: "1"\n', 2, "version", "expected a whole number, found text"),
    ("version as a fraction", "id: x\nversion: 1.5\n", 2, "version", "expected a whole number"),
    ("version true", "id: x\nversion: true\n", 2, "version", "expected a whole number, found true/false"),
    ("negative version", "id: x\nversion: -1\n", 2, "version", "greater than or equal to 0"),
    ("NaN", "id: x\nversion: .nan\n", 2, "version", ".nan is not allowed"),
    ("infinity", "id: x\nversion: -.inf\n", 2, "version", "-.inf is not allowed"),
    ("1e999", "id: x\nversion: 1e999\n", 2, "version", "1e999 is not allowed"),
    ("unknown family", MANIFEST + "defaults:\n  family: multiple_choise\n", 4, "defaults.family", "did you mean"),
    (
        "unknown environment key",
        MANIFEST + "defaults:\n  environment:\n    imag: x\n",
        5,
        "defaults.environment.imag",
        "(did you mean 'image'?)",
    ),
    (
        "bad default limit",
        MANIFEST + "defaults:\n  environment:\n    resources: {pids: 0}\n",
        5,
        "defaults.environment.resources.pids",
        "greater than 0",
    ),
    ("root with ..", MANIFEST + "asset_roots: {public: ../x}\n", 3, "asset_roots.public", "contains '..'"),
    ("absolute root", MANIFEST + "asset_roots: {eval: /etc}\n", 3, "asset_roots.eval", "absolute"),
    ("backslash in root", MANIFEST + "asset_roots: {public: 'a\\b'}\n", 3, "asset_roots.public", "backslash"),
    ("pack as root", MANIFEST + "asset_roots: {public: .}\n", 3, "asset_roots.public", "empty part or '.'"),
    ("equal roots", MANIFEST + "asset_roots: {public: x, eval: X}\n", 3, "asset_roots", "inside each other"),
    (
        "root inside the other",
        MANIFEST + "asset_roots: {public: x, eval: x/y}\n",
        3,
        "asset_roots",
        "inside each other",
    ),
    ("anchor", "id: &a x\nversion: 1\n", 1, "id", "anchors and aliases are not allowed"),
    ("tag", MANIFEST + "defaults: !evil {}\n", 3, "defaults", "tags are not allowed"),
    ("tagged scalar", "id: !!binary eA==\nversion: 1\n", 1, "id", "is not allowed; write a plain value"),
    ("merge key", MANIFEST + "<<: {x: 1}\n", 3, "", "keys must be plain text"),
    ("number as key", MANIFEST + "1: x\n", 3, "", "keys must be plain text"),
    ("two documents", MANIFEST + "---\nid: y\n", 3, "", "another document"),
    ("not YAML", "id: [\n", 2, "", "not YAML"),
    ("bad encoding", b"id: x\nversion: 1 # \xff\n", 2, "", "not UTF-8: byte 0xff"),
    ("NUL", b"id: x\0\n", 1, "", "NUL"),
]


@pytest.mark.parametrize("text, line, field, words", [m[1:] for m in MANIFESTS], ids=[m[0] for m in MANIFESTS])
def test_broken_manifest_is_refused_with_its_line_and_field(
    tmp_path: Path, text: Any, line: int, field: str, words: str
) -> None:
    [(found_line, found_field, message)] = problems(write_pack(tmp_path, [CHOICE], text), "manifest.yaml")
    assert (found_line, found_field) == (line, field)
    assert words in message


def test_all_problems_of_a_manifest_are_reported_at_once(tmp_path: Path) -> None:
    manifest = "id: 7\nversion: x\nid: y\nextra: 1\ndefaults: {family: x, environment: {imag: x, workdir: y}}\n"
    found = problems(write_pack(tmp_path, [CHOICE], manifest), "manifest.yaml")
    assert sorted((line, field) for line, field, _ in found) == [
        (2, "version"),
        (3, "id"),
        (4, "extra"),
        (5, "defaults.environment.imag"),
        (5, "defaults.environment.workdir"),
        (5, "defaults.family"),
    ]


def test_all_problems_of_a_file_are_reported_at_once_in_order(tmp_path: Path) -> None:
    rows = [
        changed(changed(changed(CHOICE, "eval", {"anwser": "B"}), "input.question", 1), "extra", 1),
        "nonsense",
        changed(SHORT, "id", "choice-1"),
        changed(changed(SHORT, "assets", [{"path": "none"}, {"path": "nowhere"}]), "id", "s2"),
    ]
    assert [(line, field) for line, field, _ in problems(write_pack(tmp_path, rows))] == [
        (1, "eval.answer"),
        (1, "eval.anwser"),
        (1, "extra"),
        (1, "input.question"),
        (2, ""),
        (3, "id"),
        (4, "assets[0].path"),
        (4, "assets[1].path"),
    ]


def test_misspelt_private_key_gets_its_hint_although_the_right_one_is_missing(tmp_path: Path) -> None:
    error = str(refused(write_pack(tmp_path, [changed(CHOICE, "eval", {"anwser": "B"})])))
    assert "eval.answer: required key is missing" in error
    assert "unknown key 'anwser' (did you mean 'answer'?)" in error


def test_more_problems_than_anyone_reads_are_counted(tmp_path: Path) -> None:
    error = refused(write_pack(tmp_path, ["x"] * 250))
    assert len(error.problems) == benchmark_pack.MAX_PROBLEMS
    assert str(error).endswith("… and 50 more problems")


def test_duplicate_id_names_the_first_line_even_if_that_row_is_broken(tmp_path: Path) -> None:
    rows = [changed(CHOICE, "input", {}), row("short_answer"), row("short_answer", id=CHOICE["id"])]
    found = problems(write_pack(tmp_path, rows))
    assert (3, "id", "duplicate id 'choice-1' (first on line 1)") in found


@pytest.mark.parametrize("content", [b"", b"\n\n  \n"])
def test_file_without_rows_is_refused(tmp_path: Path, content: bytes) -> None:
    [(line, _, message)] = problems(write_pack(tmp_path, content))
    assert line == 0
    assert "holds no row" in message


def test_blank_lines_are_skipped_and_counted_and_the_last_line_needs_no_end(tmp_path: Path) -> None:
    content = b"\r\n\n" + line_of(CHOICE).encode() + b"\r\n   \n" + line_of(SHORT).encode()
    pack = load(write_pack(tmp_path, content))
    assert [(entry.row.id, entry.line) for entry in pack] == [("choice-1", 3), ("short-1", 5)]


def test_pack_is_found_by_directory_manifest_or_tasks(tmp_path: Path) -> None:
    write_pack(tmp_path, [CHOICE])
    found = tmp_path / "manifest.yaml", tmp_path / "tasks.jsonl"
    with pytest.raises(PackError, match=r"none: no such directory\Z"):
        find_pack(tmp_path / "none")
    assert find_pack(tmp_path) == find_pack(found[0]) == find_pack(found[1]) == found
    (tmp_path / "some.jsonl").write_bytes(found[1].read_bytes())
    assert find_pack(tmp_path / "some.jsonl") == (found[0], tmp_path / "some.jsonl")


@pytest.mark.parametrize("name", ["manifest.yaml", "tasks.jsonl"])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path, [CHOICE])
    (tmp_path / name).unlink()
    assert str(refused(tmp_path)) == f"{tmp_path / name}: cannot be read: no such file or directory"
    with pytest.raises(PackError, match=r"a pack has manifest\.yaml and tasks\.jsonl"):
        find_pack(tmp_path)


@pytest.mark.parametrize("name", ["manifest.yaml", "tasks.jsonl"])
def test_fifo_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path, [CHOICE])
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert "not a regular file" in str(refused(tmp_path))


@pytest.mark.parametrize("name", ["manifest.yaml", "tasks.jsonl"])
def test_directory_in_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    write_pack(tmp_path, [CHOICE])
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    assert "not a regular file" in str(refused(tmp_path))


def test_tasks_file_among_the_public_assets_is_refused(tmp_path: Path) -> None:
    write_pack(tmp_path, [CHOICE])
    (tmp_path / "tasks.jsonl").rename(tmp_path / "assets" / "tasks.jsonl")
    with pytest.raises(PackError, match=r"lies beneath asset_roots\.public"):
        benchmark_pack.load_benchmark_pack(tmp_path / "manifest.yaml", tmp_path / "assets" / "tasks.jsonl")


# Sizes


@pytest.mark.parametrize(
    "limit, value, line, words",
    [
        ("MAX_ROW_BYTES", 200, 2, "row is larger than 200 bytes"),
        ("MAX_TASKS_BYTES", 300, 0, "file is larger than 300 bytes"),
        ("MAX_ROWS", 2, 3, "more than 2 rows"),
    ],
)
def test_file_over_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, line: int, words: str
) -> None:
    write_pack(tmp_path, [CHOICE, row(id="long", metadata={"x": "y" * 100}), row(id="third")])
    load(tmp_path)
    monkeypatch.setattr(benchmark_pack, limit, value)
    assert (line, "", words) in problems(tmp_path)


@pytest.mark.parametrize(
    "limit, value, words", [("MAX_ASSET_ENTRIES", 3, "too many files"), ("MAX_ASSET_BYTES", 3, "more than 3 bytes")]
)
def test_asset_over_a_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, words: str
) -> None:
    write_pack(tmp_path, [row(assets=[{"path": "tree"}])])
    load(tmp_path)
    monkeypatch.setattr(benchmark_pack, limit, value)
    [(line, field, message)] = problems(tmp_path)
    assert (line, field) == (1, "assets[0].path")
    assert words in message


def test_manifest_over_the_limit_is_refused(tmp_path: Path) -> None:
    write_pack(tmp_path, [CHOICE], MANIFEST + "#" * _yaml.MAX_BYTES)
    assert problems(tmp_path, "manifest.yaml") == [(0, "", f"file is larger than {_yaml.MAX_BYTES} bytes")]


# Assets that are not plain


def _link_file(pack: Path) -> None:
    (pack / "assets/tree/a.txt").unlink()
    (pack / "assets/tree/a.txt").symlink_to("../data.txt")


def _link_directory(pack: Path) -> None:
    (pack / "assets/tree").rename(pack / "assets/real")
    (pack / "assets/tree").symlink_to("real")


def _link_root(pack: Path) -> None:
    (pack / "assets").rename(pack / "real")
    (pack / "assets").symlink_to("real")


def _link_to_hidden(pack: Path) -> None:
    (pack / "assets/tree/deep/leak").symlink_to("../../../hidden")


def _dangling_link(pack: Path) -> None:
    (pack / "assets/tree/deep/nowhere").symlink_to("nothing")


def _fifo(pack: Path) -> None:
    os.mkfifo(pack / "assets/tree/fifo")


def _socket(pack: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(pack / "assets/tree/s"))


def _odd_name(pack: Path) -> None:
    (pack / "assets/tree").joinpath(os.fsdecode(b"\xff")).touch()


def _control_name(pack: Path) -> None:
    (pack / "assets/tree/\x1b[2J").touch()


@pytest.mark.parametrize(
    "spoil, path, words",
    [
        (_link_file, "tree/a.txt", "symbolic link"),
        (_link_file, "tree", "symbolic link"),
        (_link_directory, "tree", "symbolic link"),
        (_link_directory, "tree/a.txt", "symbolic link"),
        (_link_root, "data.txt", "symbolic link"),
        (_link_to_hidden, "tree", "symbolic link"),
        (_dangling_link, "tree", "symbolic link"),
        (_fifo, "tree/fifo", "neither a regular file nor a directory"),
        (_fifo, "tree", "neither a regular file nor a directory"),
        (_socket, "tree", "neither a regular file nor a directory"),
        (_odd_name, "tree", r"holds the name '\udcff'"),
        (_control_name, "tree", r"holds the name '\x1b[2J'"),
    ],
)
def test_asset_that_is_not_plain_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], path: str, words: str
) -> None:
    write_pack(tmp_path, [row(assets=[{"path": path}])])
    spoil(tmp_path)
    [(line, field, message)] = problems(tmp_path)
    assert (line, field) == (1, "assets[0].path")
    assert words in message


def test_file_that_many_rows_name_is_read_once_and_reported_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = _fs.tree_digest
    monkeypatch.setattr(_fs, "tree_digest", lambda *args: (read.append(args[1]), real(*args))[1])
    rows = [row(id=str(number), assets=[{"path": "data.txt"}, {"path": "none"}]) for number in range(5)]
    assert len(problems(write_pack(tmp_path, rows))) == 5
    assert len(read) == 2


# Private values never get into a message

MARKED_BREAKS: list[tuple[str, Callable[[str], Any]]] = [
    ("answer of no choice", lambda m: changed(CHOICE, "eval.answer", m)),
    ("answer list", lambda m: changed(CHOICE, "eval.answer", [m, m])),
    ("answer object", lambda m: changed(CHOICE, "eval.answer", {m: m})),
    ("unreadable number", lambda m: changed(SHORT, "eval.accepted_answers", [m])),
    ("answers as text", lambda m: changed(SHORT, "eval.accepted_answers", m)),
    ("tolerance as text", lambda m: changed(SHORT, "eval.tolerance", m)),
    ("overflow", lambda m: line_of(SHORT).replace("0.5", f"{int(m.encode().hex(), 16)}e999")),
    ("long integer", lambda m: line_of(SHORT).replace("0.5", str(int(m.encode().hex(), 16)) * 200)),
    ("accepted is rejected", lambda m: changed(FREE, "eval.rubric.rejected_answers", ["Oslo", m])),
    ("rubric kind", lambda m: changed(FREE, "eval.rubric.type", m)),
    ("rubric as text", lambda m: changed(FREE, "eval.rubric", m)),
    ("tests kind", lambda m: changed(CODE, "eval.tests", {"source": m, "code": m})),
    ("tests as text", lambda m: changed(CODE, "eval.tests", m)),
    ("case outcomes", lambda m: changed(CODE, "eval.tests.cases.0.raises", m)),
    ("test ids as text", lambda m: changed(PATCH, "eval.tests.fail_to_pass", m)),
    ("patch of the wrong type", lambda m: changed(PATCH, "eval.gold_patch", [m])),
    ("checker kind", lambda m: changed(TERMINAL, "eval.checker.source", m)),
    ("undeclared beside a wrong field", lambda m: changed(changed(CHOICE, "eval.notes", m), "id", 1)),
    ("broken JSON", lambda m: line_of(changed(CHOICE, "eval.answer", m))[:-1]),
    ("private text in a public number", lambda m: changed(changed(CHOICE, "eval.notes", [m]), "metadata", m)),
    ("lone surrogate", lambda m: changed(CHOICE, "eval.answer", m + "\ud800")),
]


@pytest.mark.parametrize("broken", [case[1] for case in MARKED_BREAKS], ids=[case[0] for case in MARKED_BREAKS])
def test_private_value_of_a_broken_row_is_never_in_the_message(tmp_path: Path, broken: Callable[[str], Any]) -> None:
    marker = f"zq{secrets.token_hex(8)}"
    error = refused(write_pack(tmp_path, [broken(marker)]))
    shown = f"{error} {error.problems!r} {error.args!r}"
    assert marker not in shown
    assert str(int(marker.encode().hex(), 16))[:15] not in shown
    assert marker not in f"{error.__cause__} {error.__context__}"


def test_key_of_any_length_makes_a_short_message_of_one_line(tmp_path: Path) -> None:
    error = refused(write_pack(tmp_path, [changed(CHOICE, "x\n\x1b[2J" + "k" * 100_000, 1)]))
    assert len(str(error)) < 500
    assert str(error).isprintable()


# What is kept


def test_undeclared_private_key_is_kept_hidden(tmp_path: Path) -> None:
    (task,) = tasks(write_pack(tmp_path, [changed(CHOICE, "eval.provenance", {"url": "x"})]))
    assert task.hidden_payload()["hidden"]["provenance"] == {"url": "x"}
    assert task.resource_summary()["provenance"] == {"visibility": "hidden", "value": "[redacted]"}


@pytest.mark.parametrize(
    "place, value",
    [
        ("eval.tests.cases.0.args", [{"path": "no/such/file"}]),
        ("eval.tests.cases.0.kwargs", {"path": "/etc/passwd"}),
        ("eval.tests.cases.0.expected", {"path": "../x"}),
        ("eval.notes", {"path": "../x", "and": "more"}),
        ("eval.notes", [{"path": "../x"}]),
        ("eval.notes", {"deep": {"path": "../x"}}),
    ],
)
def test_data_that_only_resembles_a_file_is_data(tmp_path: Path, place: str, value: Any) -> None:
    pack = load(write_pack(tmp_path, [changed(CODE, place, value)]))
    assert set(pack.file_digests) == {"hidden/secret.txt"}


def test_environment_is_merged_over_the_defaults_key_by_key(tmp_path: Path) -> None:
    manifest = {
        "id": "x",
        "version": 1,
        "defaults": {
            "family": "multiple_choice",
            "environment": {
                "image": "base:1",
                "timeout_seconds": 5,
                "resources": {"memory": "1g", "pids": 10},
                "network": {"allowed_domains": ["a.example"]},
            },
        },
    }
    own = {
        "timeout_seconds": 9,
        "image": None,
        "resources": {"pids": 20, "cpus": 2},
        "network": {"allowed_domains": []},
    }
    plain = changed(CHOICE, "family", REMOVED)
    one, two = tasks(write_pack(tmp_path, [plain | {"environment": own}, plain | {"id": "2"}], manifest))
    assert (one.environment.image, one.environment.timeout_seconds) == (None, 9)
    assert (one.environment.memory, one.environment.pids, one.environment.cpus) == (2**30, 20, 2)
    assert one.environment.allowed_domains == ()
    assert (two.environment.image, two.environment.timeout_seconds) == ("base:1", 5)
    assert (two.environment.memory, two.environment.pids, two.environment.cpus) == (2**30, 10, None)
    assert two.environment.allowed_domains == ("a.example",)


# Evidence


def test_row_changed_on_disk_after_loading_is_found(tmp_path: Path) -> None:
    pack = load(write_pack(tmp_path, [CHOICE, SHORT]))
    content = (tmp_path / "tasks.jsonl").read_bytes()
    (tmp_path / "tasks.jsonl").write_bytes(content.replace(b'"B"', b'"A"'))
    with pytest.raises(IntegrityError, match=r"tasks\.jsonl:1: row changed since the pack was loaded"):
        pack[0]
    assert pack[1].row.id == "short-1"


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: os.truncate(path, 3)])
def test_tasks_file_gone_after_loading_is_found(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    pack = load(write_pack(tmp_path, [CHOICE]))
    spoil(tmp_path / "tasks.jsonl")
    with pytest.raises(IntegrityError):
        list(pack)


def test_digest_pins_manifest_rows_and_files(tmp_path: Path) -> None:
    def digest(**changes: Any) -> str:
        arguments: dict[str, Any] = {"rows": [row(assets=[{"path": "tree"}])], "manifest": MANIFEST, "files": FILES}
        return load(write_pack(tmp_path / secrets.token_hex(4), **(arguments | changes))).digest

    same = digest()
    assert same == digest()
    assert same == digest(files=dict(FILES) | {"assets/unused.txt": "x"})
    different = {
        same,
        digest(manifest=MANIFEST + "# comment\n"),
        digest(rows=[row(assets=[{"path": "tree"}], metadata={"a": 1})]),
        digest(files=dict(FILES) | {"assets/tree/a.txt": "changed"}),
        digest(files=dict(FILES) | {"assets/tree/new.txt": ""}),
    }
    assert len(different) == 5


def test_no_answer_can_be_tried_against_the_digest_of_its_row(tmp_path: Path) -> None:
    """What a stranger can hash of one row, with the right answer in it, is none of the pack's digests."""
    pack = load(write_pack(tmp_path / "pack", [row("multiple_choice", id="a"), row("multiple_choice", id="b")]))
    alone = load(write_pack(tmp_path / "alone", [row("multiple_choice", id="a")]))
    [raw, _] = (tmp_path / "pack/tasks.jsonl").read_bytes().splitlines(keepends=True)
    guessed = hashlib.sha256(raw).hexdigest()
    known = {pack.digest, *(entry.digest for entry in pack)}
    for files in ({}, None):
        for form in (guessed, f"sha256:{guessed}"):
            assert digest_value({"row": form, "files": files}) not in known
    assert f"sha256:{guessed}" not in known
    assert pack[0].digest != alone[0].digest, "without all the others it cannot be made"


def test_row_digest_pins_public_and_private_files_of_the_same_name(tmp_path: Path) -> None:
    source = row("free_response", assets=[{"path": "same"}])
    source["eval"]["reference_answer"] = {"path": "same"}

    def digest(public: str, private: str) -> str:
        files = {"assets/same": public, "hidden/same": private}
        return load(write_pack(tmp_path / secrets.token_hex(4), [source], files=files))[0].digest

    assert len({digest("a", "a"), digest("a", "b"), digest("b", "a")}) == 3
