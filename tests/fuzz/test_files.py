"""Bytes nobody meant as YAML or JSONL: always an answer in our own words, always soon, never a traceback."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packs import MANIFEST, VALID_ROWS, load, row, write_pack

from securebench.errors import ConfigError, PackError
from securebench.tester_config import load_env_file, load_tester_config

DEADLINE = 5.0
FUZZ = settings(max_examples=100)

MANIFEST_SEED = b"""\
id: fuzz
version: 1  # a comment
defaults:
  family: multiple_choice
  environment: {image: "python:3.12", timeout_seconds: 1.5e1, resources: {memory: 1g, pids: 0x10}}
asset_roots:
  public: 'assets'
  eval: >-
    hidden
asset_defaults: {read_only: true}
"""
TESTER_SEED = b"""\
schema_version: "0.3"
run: {id: fuzz, output_dir: out, attempts: 2}
benchmark: {manifest: m.yaml, tasks: t.jsonl}
harness:
  type: command
  env: [A, B]
  config:
    command: |
      echo "Answer: A"
    timeout_seconds: 10
sandbox: {backend: auto, cpus: 1.5}
"""
ROWS_SEED = b"".join(json.dumps(source).encode() + b"\n" for source in VALID_ROWS.values())
TOKENS = st.sampled_from(
    [
        *(mark.encode() for mark in ["\n", "  ", ": ", "- ", "&a ", "*a", "!!x ", "|\n", "> \n", "? ", "<<: ", "~"]),
        *(mark.encode() for mark in ["---\n", "...\n", "%YAML 1.1\n---\n", "\t", "\r", "\0", "\\", "\\u", "\\ud800"]),
        *(mark.encode() for mark in ["NaN", "1e999", "-.inf", "0x", "null", "../", "9" * 5000, "\u2028", "\ufeff"]),
        *(bytes([byte]) for byte in b"{}[]\"'#,\xff"),
        b"\xed\xa0\x80",
    ]
)


@st.composite
def mutated(draw: st.DrawFn, seed: bytes) -> bytes:
    """A valid file with a few cuts, insertions, repetitions and flipped bytes."""
    data = bytearray(seed)
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        match draw(st.sampled_from(["cut", "token", "bytes", "repeat", "flip"])):
            case "cut":
                del data[start:end]
            case "token":
                data[start:start] = draw(TOKENS)
            case "bytes":
                data[start:end] = draw(st.binary(max_size=8))
            case "repeat":
                data[start:start] = data[start:end] * draw(st.integers(1, 5))
            case _ if start < len(data):
                data[start] ^= draw(st.integers(1, 255))
    return bytes(data)


def answers_soon(call: Callable[[], Any], error: type[ConfigError]) -> None:
    started, refused = time.process_time(), None
    try:
        call()
    except error as caught:
        refused = caught
    assert time.process_time() - started < DEADLINE
    if refused is not None:
        assert str(refused).encode("utf-8")
        assert all(len(str(problem)) < 2000 for problem in refused.problems)


def check_manifest(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pack = write_pack(Path(temporary), [row()], data)
        answers_soon(lambda: load(pack), PackError)


def check_rows(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pack = write_pack(Path(temporary), data)
        answers_soon(lambda: list(load(pack)), PackError)


def check_tester(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "tester.yaml")
        path.write_bytes(data)
        answers_soon(lambda: load_tester_config(path), ConfigError)


def test_seeds_are_valid(tmp_path: Path) -> None:
    """The positive control: mutations start from files that load."""
    load(write_pack(tmp_path, ROWS_SEED, MANIFEST_SEED))
    (tmp_path / "tester.yaml").write_bytes(TESTER_SEED)
    load_tester_config(tmp_path / "tester.yaml")


@FUZZ
@given(st.binary(max_size=300) | mutated(MANIFEST_SEED))
def test_any_bytes_as_a_manifest_are_answered(data: bytes) -> None:
    check_manifest(data)


@FUZZ
@given(st.binary(max_size=300) | mutated(TESTER_SEED))
def test_any_bytes_as_a_tester_file_are_answered(data: bytes) -> None:
    check_tester(data)


@FUZZ
@given(st.binary(max_size=300) | mutated(ROWS_SEED))
def test_any_bytes_as_rows_are_answered(data: bytes) -> None:
    check_rows(data)


@FUZZ
@given(st.binary(max_size=300) | mutated(b"# keys\nexport A='b c' # d\nB=\"e\"\nC=f\n"))
def test_any_bytes_as_an_env_file_are_answered(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, ".env")
        path.write_bytes(data)
        answers_soon(lambda: load_env_file(path), ConfigError)


@FUZZ
@given(st.lists(TOKENS, max_size=60).map(b"".join))
def test_any_pile_of_yaml_tokens_is_answered(data: bytes) -> None:
    check_tester(data)


N = 500_000
HOSTILE_YAML = {
    "alias bomb": b"a0: &a0 [x, x]\n"
    + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 400)),
    "brackets": b"[" * N,
    "braces": b"{a: " * (N // 4),
    "dashes": b"- " * (N // 2),
    "keys": b"".join(b"k%d: 1\n" % i for i in range(N // 10)),
    "flow list": b"[" + b"1," * (N // 2) + b"]",
    "long line": b"id: " + b"x" * N,
    "long number": b"version: " + b"9" * N,
    "hexadecimal number": b"version: 0x" + b"f" * 200_000,
    "blank lines": b"\n" * N,
    "quotes": b'id: "' + b"\n" * 200_000,
}


@pytest.mark.parametrize("data", HOSTILE_YAML.values(), ids=HOSTILE_YAML)
@pytest.mark.parametrize("size", [N, 200_000], ids=["refused by size", "parsed"])
def test_hostile_yaml_is_answered_soon(data: bytes, size: int) -> None:
    check_manifest(data[:size])
    check_tester(data[:size])


def _with(**changes: Any) -> bytes:
    return json.dumps(row(**changes)).encode()


HOSTILE_ROWS = {
    "brackets": b"[" * N,
    "objects": b'{"a":' * (N // 5),
    "long number": b"9" * N,
    "long fraction": b"0." + b"9" * N,
    "long exponent": b"1e" + b"9" * N,
    "long key": json.dumps(row() | {"k" * N: 1}).encode(),
    "long id": _with(id="x" * N),
    "many keys": json.dumps(row() | {f"k{i}": 1 for i in range(N // 12)}).encode(),
    "many private keys": _with(eval={"answer": "B"} | {f"k{i}": 1 for i in range(N // 12)}),
    "one key again and again": b"{" + b'"a":1,' * (N // 6) + b'"a":1}',
    "many wrong assets": _with(assets=[1] * (N // 2)),
    "many missing assets": _with(assets=[{"path": f"{i}"} for i in range(N // 20)]),
    "many equal mounts": _with(assets=[{"path": "data.txt"}] * (N // 22)),
    "many choices": _with(input={"question": "?", "choices": ["x"] * (N // 5)}),
    "deep value": _with(metadata={"a": "MARK"}).replace(b'"MARK"', b"[" * 900 + b"]" * 900),
    "many blank lines": b"\n" * N,
    "many short lines": b"1\n" * (N // 2),
    "surrogates": _with(metadata={"a": "\ud800" * (N // 6)}),
    "many domains": _with(environment={"network": {"allowed_domains": ["a." * 100 + "b"] * (N // 250)}}),
}


@pytest.mark.parametrize("data", HOSTILE_ROWS.values(), ids=HOSTILE_ROWS)
def test_hostile_rows_are_answered_soon(data: bytes) -> None:
    check_rows(data)


def test_manifest_that_is_valid_at_the_size_limit_still_loads(tmp_path: Path) -> None:
    from securebench import _yaml

    comment = b"#" * (_yaml.MAX_BYTES - len(MANIFEST) - 1) + b"\n"
    assert len(load(write_pack(tmp_path, [row()], MANIFEST.encode() + comment))) == 1
