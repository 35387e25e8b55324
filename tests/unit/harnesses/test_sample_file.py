"""Files of samples: indexed in one pass, every problem with its line, nothing believed twice."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.errors import ConfigError, IntegrityError
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_file import Line, open_samples
from securebench.harnesses.sample_layouts import base

KINDS = {"a": CandidateKind.CODE, "b": CandidateKind.TEXT, "p": CandidateKind.PATCH, "w": CandidateKind.WORKSPACE}


def line(task: str, text: Any = "x", key: str = "solution") -> bytes:
    return json.dumps({"task_id": task, key: text}).encode()


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught, open_samples(path, KINDS):
        pass
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


def test_the_nth_sample_of_a_task_is_its_attempt_n(tmp_path: Path) -> None:
    rows = [line("a", "1"), line("b", "2"), b"", line("a", "3")]
    path = write(tmp_path / "s.jsonl", *rows)
    with open_samples(path, KINDS) as samples:
        assert (len(samples), samples.count("a"), samples.count("p")) == (3, 2, 0)
        assert samples.line("a", 1) == Line(1, rows[0])
        assert samples.line("a", 2) == Line(4, rows[3])
        assert samples.line("b", 1) == Line(2, rows[1])
        assert samples.line("a", 3) is samples.line("p", 1) is None
        assert samples.digest == digest_bytes(path.read_bytes())


def test_packed_file_has_the_digest_of_its_lines(tmp_path: Path) -> None:
    plain = write(tmp_path / "s.jsonl", line("a"), line("b"))
    packed = tmp_path / "other-name"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with open_samples(plain, KINDS) as one, open_samples(packed, KINDS) as other:
        assert one.digest == other.digest
        assert other.line("b", 1) == one.line("b", 1)


def test_last_line_needs_no_end_and_ends_may_be_those_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line("a") + b"\r\n" + line("b"))
    with open_samples(path, KINDS) as samples:
        assert samples.line("a", 1) == Line(1, line("a"))
        assert samples.line("b", 1) == Line(2, line("b"))


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        b'{"task_id": "a", "solution": "x"',
        line("a"),
        b'{"task_id": "a", "task_id": "b", "solution": "x"}',
        line("aa"),
        line("p", "diff"),
        line("w"),
        b'{"task_id": "a", "solution": NaN}',
        b'"text"',
        line("a", 7),
        b"\xff",
    )
    told = problems(path)
    assert [one.split(":")[1] for one in told] == ["1", "3", "4", "5", "6", "7", "8", "9", "10"]
    assert told[0] == ":1: not JSON: Expecting ',' delimiter at column 33"
    assert "duplicate key 'task_id'" in told[1]
    assert told[2] == ":4: task_id: the pack has no task 'aa'"
    assert told[3] == ":5: solution: this task collects a patch: give model_patch or model_reply"
    assert told[4].startswith(":6: task_id: this task collects a workspace")
    assert "NaN is not allowed" in told[5]
    assert told[8] == ":10: not UTF-8: byte 0xff at offset 0"


def test_misspelt_id_is_told_what_was_meant(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", line("HumanEval-3"))
    with (
        pytest.raises(ConfigError, match="did you mean 'HumanEval/3'"),
        open_samples(path, {"HumanEval/3": CandidateKind.CODE}),
    ):
        pass


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_file_without_a_sample_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    assert problems(path) == [": holds no sample; write one JSON object per line"]


def test_many_problems_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *[b"{}"] * 300)
    with pytest.raises(ConfigError, match="and 100 more problems"), open_samples(path, KINDS):
        pass


def test_line_without_an_end_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_LINE", 1000)
    path = write(tmp_path / "s.jsonl", line("a"), b'{"x": "' + b"y" * 5000)
    assert problems(path) == [":2: is longer than 1000 bytes"]


def test_packed_bomb_is_not_unpacked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_BYTES", 5 * 2**20)
    path = tmp_path / "s.gz"
    path.write_bytes(gzip.compress(bytes(50 * 2**20)))
    assert problems(path) == [": has more than 5242880 bytes"]


@pytest.mark.parametrize(
    "data",
    [gzip.compress(line("a"), mtime=0)[:-9], b"\x1f\x8b\x08garbage", b"\x1f\x8b"],
    ids=["cut", "garbage", "nothing"],
)
def test_broken_archive_is_the_operators_problem(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.gz"
    path.write_bytes(data)
    assert "cannot be read" in problems(path)[0]


def test_missing_file_and_fifo_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert problems(tmp_path / "none") == [": cannot be read: no such file or directory"]
    assert problems(tmp_path / "fifo") == [": cannot be read: not a regular file"]
    assert problems(tmp_path)[0].startswith(": holds no sample: neither TASK/0.py")


def test_file_that_changes_under_the_run_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", line("a", "first"), line("a", "other"))
    with open_samples(path, KINDS) as samples:
        data = path.read_bytes()
        with path.open("r+b") as file:
            file.write(data.replace(b"first", b"1irst"))
        with pytest.raises(IntegrityError, match=r"s.jsonl:1: changed since it was checked"):
            samples.line("a", 1)
        assert samples.line("a", 2) == Line(2, line("a", "other"))


def test_index_is_a_few_bytes_a_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        for number in range(50_000):
            file.write(line("a", f"{number}" + "x" * 200) + b"\n")
    tracemalloc.start()
    with open_samples(path, KINDS) as samples:
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert samples.line("a", 50_000) is not None
    assert used < 50_000 * 60
