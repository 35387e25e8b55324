"""The tester YAML and the env file: every problem with its line, every default filled in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from securebench import tester_config
from securebench.env_file import MAX_ENV_BYTES
from securebench.errors import ConfigError
from securebench.harness_schema import CommandHarness
from securebench.tester_config import (
    load_env_file,
    load_tester_config,
    parse_tester_config,
)

TESTER = """\
schema_version: "0.2"
run:
  id: first
  output_dir: runs/first
benchmark:
  manifest: pack/manifest.yaml
  tasks: pack/tasks.jsonl
harness:
  type: command
  env: [API_KEY]
  config:
    command: echo hi
"""
FULL = TESTER.replace('"0.2"', '"0.3"').replace(
    "runs/first\n", "runs/first\n  attempts: 3\n  max_workers: 2\n  seed: 7\n"
)
FULL += """\
verification: {disallow_dangerous_commands: false, deny_commands: [curl]}
sandbox: {backend: bubblewrap, memory: 512m, cpus: 2, pids: 64, disk: 1g}
budget: {tokens: 1000, usd: 1.5, seconds: 60}
executor: {type: ray, address: "ray://x"}
records: {sign: false}
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "tester.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems(path: Path) -> list[tuple[int, str, str]]:
    with pytest.raises(ConfigError) as caught:
        load_tester_config(path)
    return [(problem.line, problem.field, problem.message) for problem in caught.value.problems]


def test_schema_02_file_gets_every_default(tmp_path: Path) -> None:
    config = load_tester_config(write(tmp_path, TESTER), env={"API_KEY": "k", "OTHER": "o"})
    assert (config.schema_version, config.run_id) == ("0.2", "first")
    assert config.output_dir == tmp_path / "runs/first"
    assert config.manifest == tmp_path / "pack/manifest.yaml"
    assert config.tasks == tmp_path / "pack/tasks.jsonl"
    assert isinstance(config.harness, CommandHarness)
    assert config.harness.config.task_file == "task.json"
    assert config.env == {"API_KEY": "k"}, "only what is named is passed on"
    assert config.run.attempts == 1
    assert config.verification.disallow_dangerous_commands is True
    assert config.sandbox.backend == "auto"
    assert config.records.sign is True


def test_schema_03_file_has_all_sections(tmp_path: Path) -> None:
    config = load_tester_config(write(tmp_path, FULL))
    assert (config.run.attempts, config.run.max_workers, config.run.seed) == (3, 2, 7)
    assert (config.sandbox.memory, config.sandbox.cpus, config.sandbox.disk) == (512 * 2**20, 2, 2**30)
    assert (config.budget.tokens, config.budget.usd, config.budget.seconds) == (1000, 1.5, 60)
    assert (config.executor.type, config.executor.address) == ("ray", "ray://x")
    assert config.verification.deny_commands == {"curl"}
    assert config.records.sign is False


@pytest.mark.parametrize("command", ["echo a  b", ["echo", "a  b"]])
def test_command_is_a_shell_line_or_an_argv(tmp_path: Path, command: Any) -> None:
    config = load_tester_config(write(tmp_path, TESTER.replace("echo hi", json.dumps(command))))
    assert isinstance(config.harness, CommandHarness)
    assert config.harness.config.command == (command if isinstance(command, str) else tuple(command))


def test_folded_command_is_one_clean_line(tmp_path: Path) -> None:
    config = load_tester_config(write(tmp_path, TESTER.replace("echo hi", ">\n      echo a\n      b\n")))
    assert isinstance(config.harness, CommandHarness)
    assert config.harness.config.command == "echo a b\n"


@pytest.mark.parametrize(
    "harness",
    [
        {"type": "codex", "config": {"model": "m"}},
        {"type": "claude_code"},
        {"type": "chat", "config": {"base_url": "http://x", "model": "m"}},
        {"type": "null"},
        {"type": "echo"},
        {"type": "constant", "config": {"response": "B"}},
        {"type": "samples", "config": {"path": "samples.jsonl"}},
    ],
)
def test_every_harness_type_is_accepted(harness: dict[str, Any]) -> None:
    assert parse_tester_config(_data(harness=harness)).harness.type == harness["type"]


def _data(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.3",
        "run": {"id": "r", "output_dir": "out"},
        "benchmark": {"manifest": "m", "tasks": "t"},
        "harness": {"type": "command", "config": {"command": "true"}},
    } | changes


BROKEN: list[tuple[str, str, int, str, str]] = [
    # replace this, by this, line, field, words of the message
    ('"0.2"', "0.2", 1, "schema_version", "in quotes"),
    ('"0.2"', '"0.4"', 1, "schema_version", 'expected schema_version: "0.3"'),
    ('schema_version: "0.2"\n', "", 1, "schema_version", "expected schema_version"),
    ("run:\n  id: first\n  output_dir: runs/first\n", "", 1, "run", "required key is missing"),
    ("  id: first\n", "", 2, "run.id", "required key is missing"),
    ("id: first", "id: a/b", 3, "run.id", "match pattern"),
    ("id: first", "id: ..", 3, "run.id", "match pattern"),
    ("id: first", "id: 7", 3, "run.id", "expected text, found a number"),
    ("id: first", "idd: first\n  id: x", 3, "run.idd", "(did you mean 'id'?)"),
    ("id: first", "id: first\n  id: second", 4, "run.id", "duplicate key 'id' (first on line 3)"),
    ("output_dir: runs/first", 'output_dir: "a\\0b"', 4, "run.output_dir", "NUL"),
    ("output_dir: runs/first", "output_dir: ''", 4, "run.output_dir", "must not be empty"),
    ("output_dir: runs/first", "output_dir: x\n  attempts: 2", 5, "run.attempts", "another version or kind"),
    ("benchmark:", "benchmrk:", 5, "benchmrk", "(did you mean 'benchmark'?)"),
    ("manifest:", "manifst:", 6, "benchmark.manifst", "(did you mean 'manifest'?)"),
    ("type: command", "type: comand", 8, "harness", "'command', 'codex'"),
    ("  type: command\n", "", 8, "harness", "'type' is missing"),
    ("[API_KEY]", "[API-KEY]", 10, "harness.env[0]", "match pattern"),
    ("[API_KEY]", "API_KEY", 10, "harness.env", "expected a list, found text"),
    ("command: echo hi", "comand: echo hi", 12, "harness.config.comand", "(did you mean 'command'?)"),
    ("command: echo hi", "command: []", 12, "harness.config.command", "at least 1"),
    ("command: echo hi", "command: ''", 12, "harness.config.command", "must not be empty"),
    ("command: echo hi", "command: [1]", 12, "harness.config.command[0]", "expected text, found a number"),
    ("command: echo hi", 'command: "a\\0b"', 12, "harness.config.command", "NUL"),
    ("command: echo hi", 'command: "\\ud800"', 1, "", "lone surrogate"),
    ("echo hi", "echo hi\n    artifact_path: ../x", 13, "harness.config.artifact_path", "'..'"),
    ("echo hi", "echo hi\n    task_file: /etc/x", 13, "harness.config.task_file", "absolute"),
    ("echo hi", "echo hi\n    timeout_seconds: 0", 13, "harness.config.timeout_seconds", "greater than 0"),
    ("echo hi", "echo hi\n    timeout_seconds: true", 13, "harness.config.timeout_seconds", "found true/false"),
    ("echo hi", 'echo hi\n    timeout_seconds: "5"', 13, "harness.config.timeout_seconds", "found text"),
    ("echo hi", "echo hi\n    timeout_seconds: .inf", 13, "harness.config.timeout_seconds", "only finite numbers"),
    ("echo hi", "echo hi\nverification: {deny_commands: curl}", 13, "verification.deny_commands", "expected a list"),
    ("echo hi", "echo hi\nsandbox: {backend: docker}", 13, "sandbox", "unknown key 'sandbox'"),
]


@pytest.mark.parametrize("old, new, line, field, words", BROKEN)
def test_broken_tester_file_is_refused_with_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, field: str, words: str
) -> None:
    assert TESTER.count(old) == 1
    found = problems(write(tmp_path, TESTER.replace(old, new)))
    assert any((at, place) == (line, field) and words in message for at, place, message in found), found


@pytest.mark.parametrize(
    "section, value, field",
    [
        ("sandbox", {"backend": "none"}, "sandbox.backend"),
        ("sandbox", {"memory": "0"}, "sandbox.memory"),
        ("sandbox", {"memory": "1x"}, "sandbox.memory"),
        ("sandbox", {"cpus": "two"}, "sandbox.cpus"),
        ("sandbox", {"pull": "always"}, "sandbox.pull"),
        ("budget", {"usd": -1}, "budget.usd"),
        ("budget", {"tokens": 1.5}, "budget.tokens"),
        ("executor", {"type": "cloud"}, "executor.type"),
        ("executor", {"type": "ray", "autoscale_cpus": {}}, "executor.autoscale_cpus"),
        ("executor", {"type": "ray", "autoscale_cpus": 0}, "executor.autoscale_cpus"),
        ("executor", {"type": "ray", "autoscale_cpus": {"verify": 0}}, "executor.autoscale_cpus.verify"),
        ("executor", {"address": "x"}, ""),
        ("records", {"sign": "yes"}, "records.sign"),
        ("run", {"id": "r", "output_dir": "o", "attempts": 0}, "run.attempts"),
        ("harness", {"type": "codex", "config": {}}, "harness.config.model"),
        ("harness", {"type": "chat", "config": {"base_url": "ftp://x", "model": "m"}}, "harness.config.base_url"),
        ("harness", {"type": "null", "config": {"x": 1}}, "harness.config.x"),
        (
            "harness",
            {"type": "command", "config": {"command": "x", "allowed_domains": ["*"]}},
            "harness.config.allowed_domains[0]",
        ),
        ("budget", {"usd": float("nan")}, ""),
        ("budget", {"usd": object()}, ""),
    ],
)
def test_broken_section_is_refused(section: str, value: Any, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_tester_config(_data(**{section: value}))
    assert [problem.field for problem in caught.value.problems] == [field]


def test_all_problems_are_reported_at_once_even_with_an_unquoted_version(tmp_path: Path) -> None:
    text = "schema_version: 0.2\nrun: {id: a/b}\nbenchmark: {manifest: 7, taks: x}\nharness: {type: command}\nharness: {}\n"
    assert sorted((line, field) for line, field, _ in problems(write(tmp_path, text))) == [
        (1, "schema_version"),
        (2, "run.id"),
        (2, "run.output_dir"),
        (3, "benchmark.manifest"),
        (3, "benchmark.taks"),
        (3, "benchmark.tasks"),
        (4, "harness.config"),
        (5, "harness"),
    ]


@pytest.mark.parametrize("text", ["", "~", "[]", "just text", "7"])
def test_file_that_is_not_a_mapping_is_refused(tmp_path: Path, text: str) -> None:
    assert len(problems(write(tmp_path, text))) == 1


def test_missing_file_and_directory_are_refused(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.yaml") == [(0, "", "cannot be read: no such file or directory")]
    assert problems(tmp_path) == [(0, "", "cannot be read: not a regular file")]


@pytest.mark.parametrize("old, new", [("echo hi", "echo ho"), ("[API_KEY]", "[]"), ("output_dir", "output_dir")])
def test_digest_pins_what_decides_results_and_not_where_files_lie(tmp_path: Path, old: str, new: str) -> None:
    def config(text: str, folder: str) -> tester_config.TesterConfig:
        (tmp_path / folder).mkdir(exist_ok=True)
        return load_tester_config(write(tmp_path / folder, text))

    first = config(TESTER, "a").digest()
    assert first == config(TESTER.replace("runs/first", "elsewhere"), "b").digest()
    assert (first == config(TESTER.replace(old, new), "c").digest()) is (old == new)


def test_pull_is_missing_unless_never_and_decides_no_result() -> None:
    silent, missing, never = (
        parse_tester_config(_data(sandbox=section)) for section in ({}, {"pull": "missing"}, {"pull": "never"})
    )
    assert (silent.sandbox.pull, missing.sandbox.pull, never.sandbox.pull) == ("missing", "missing", "never")
    assert silent.digest() == missing.digest() == never.digest()


def samples_file(path: str) -> tester_config.TesterConfig:
    return parse_tester_config(_data(harness={"type": "samples", "config": {"path": path}}), base_dir="/there")


def test_samples_lie_beside_the_file_unless_they_are_piped_and_their_place_decides_nothing() -> None:
    assert samples_file("s.jsonl").samples == Path("/there/s.jsonl")
    assert samples_file("-").samples == Path("-")
    assert parse_tester_config(_data()).samples is None
    assert samples_file("s.jsonl").digest() == samples_file("moved/s.jsonl").digest()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": {"id": "r", "output_dir": "out", "attempts": 2}}, "as many attempts as the samples file has"),
        ({"schema_version": "0.2"}, "expected one of 'command'"),
        ({"harness": {"type": "samples"}}, "required key is missing"),
    ],
)
def test_samples_are_refused_where_they_make_no_sense(changes: dict[str, Any], words: str) -> None:
    data = _data(harness={"type": "samples", "config": {"path": "s.jsonl"}}) | changes
    with pytest.raises(ConfigError, match=words):
        parse_tester_config(data)


# Env files


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", {}),
        ("A=1\nB = two words \n", {"A": "1", "B": "two words"}),
        ("# comment\n\nexport A=1\n", {"A": "1"}),
        ("A='x y'\nB=\"#z\"\n", {"A": "x y", "B": "#z"}),
        ("A=\nB=''\n", {"A": "", "B": ""}),
        ("A=1 # comment\nB='1' # comment\nC= # comment\n", {"A": "1", "B": "1", "C": ""}),
        ("A=x#y\n", {"A": "x#y"}),
        ("A=a=b==\n", {"A": "a=b=="}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("\ufeffA=1\n", {"A": "1"}),
        ("A=x\u2028y\x85z\n", {"A": "x\u2028y\x85z"}),
        ("A=it's\n", {"A": "it's"}),
        ("A=" + "x " * 50_000 + "y\n", {"A": "x " * 50_000 + "y"}),
    ],
)
def test_env_file_is_read(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    (tmp_path / ".env").write_bytes(text.encode())
    assert load_env_file(tmp_path / ".env") == expected


@pytest.mark.parametrize(
    "text, line, words",
    [
        (b"A=1\nnonsense zqsecret\n", 2, "expected NAME=value"),
        (b"1A=zqsecret\n", 1, "expected NAME=value"),
        (b"A=1\nA=zqsecret\n", 2, "is set twice"),
        (b"A='zqsecret\n", 1, "unbalanced quotes"),
        (b'A="zqsecret" x\n', 1, "unbalanced quotes"),
        (b"A=zqsecret\0\n", 1, "NUL"),
        (b"A=1\nB=zqsecret\xff\n", 2, "not UTF-8"),
        (b"A=" + b"zqsecret" * MAX_ENV_BYTES, 0, "larger than"),
    ],
)
def test_broken_env_file_is_refused_without_showing_a_value(tmp_path: Path, text: bytes, line: int, words: str) -> None:
    (tmp_path / ".env").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load_env_file(tmp_path / ".env")
    [problem] = caught.value.problems
    assert problem.line == line
    assert words in problem.message
    assert "zqsecret" not in f"{caught.value} {caught.value.__cause__!r}"
