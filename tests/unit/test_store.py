"""`candidates.jsonl`: appended, chained, repaired after a crash, and honest about everything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from securebench._canonical import digest_bytes
from securebench.errors import IntegrityError, StoreError
from securebench.records import store as store_module
from securebench.records.store import RECORDS_FILE, RecordStore, encode_record, line_size, read_records

PLAN = digest_bytes(b"the plan")

RECORDS: list[dict[str, Any]] = [
    {"task_id": "a", "text": "first\nline"},
    {"task_id": "b", "text": "ü \u2028 \x85 \x00"},
    {"task_id": "c", "n": 3},
]


def append(store: RecordStore, *records: dict[str, Any]) -> None:
    async def appending() -> None:
        for record in records:
            await store.append(record)

    anyio.run(appending)


@contextmanager
def opened(directory: Path) -> Iterator[RecordStore]:
    with RecordStore(directory) as store:
        store.begin(PLAN)
        yield store


def write(directory: Path, records: list[dict[str, Any]] = RECORDS) -> bytes:
    with opened(directory) as store:
        list(store.records())
        append(store, *records)
    return (directory / RECORDS_FILE).read_bytes()


def read(directory: Path) -> list[dict[str, Any]]:
    with opened(directory) as store:
        return [{key: value for key, value in record.items() if key != "previous"} for record in store.records()]


def test_records_read_back_in_order(tmp_path: Path) -> None:
    write(tmp_path / "new" / "run")
    assert read(tmp_path / "new" / "run") == RECORDS


def test_each_line_carries_the_digest_of_the_one_before(tmp_path: Path) -> None:
    lines = write(tmp_path).splitlines(keepends=True)
    previous = [json.loads(line)["previous"] for line in lines]
    assert previous == [PLAN, digest_bytes(lines[0]), digest_bytes(lines[1])]


def test_later_start_continues_the_chain(tmp_path: Path) -> None:
    write(tmp_path, RECORDS[:1])
    write(tmp_path, RECORDS[1:])
    assert read(tmp_path) == RECORDS


def test_reading_twice_is_fine(tmp_path: Path) -> None:
    write(tmp_path)
    with opened(tmp_path) as store:
        assert len(list(store.records())) == len(list(store.records())) == 3
        append(store, {"task_id": "d"})
        assert len(list(store.records())) == 4


def test_appending_to_records_that_were_not_read_is_refused(tmp_path: Path) -> None:
    before = write(tmp_path)
    with opened(tmp_path) as store:
        with pytest.raises(StoreError, match="not been read and checked"):
            append(store, {"task_id": "d"})
        next(store.records())
        with pytest.raises(StoreError, match="not been read and checked"):
            append(store, {"task_id": "d"})
    assert (tmp_path / RECORDS_FILE).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\r\nc",
        "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e",
        "\ud800 and \udfff",
        "\x00\x01\x1b[2J\x7f",
        '"}\n{"',
        "\\n",
        "😀",
    ],
)
def test_any_text_stays_on_one_line(tmp_path: Path, text: str) -> None:
    content = write(tmp_path, [{"text": text, text: 1}, {"after": text}])
    assert content.count(b"\n") == 2
    assert len(content.decode("utf-8").splitlines()) == 2
    assert read(tmp_path) == [{"text": text, text: 1}, {"after": text}]


def test_record_cannot_choose_its_place_in_the_chain(tmp_path: Path) -> None:
    content = write(tmp_path, [{"previous": "forged", "task_id": "a"}])
    assert json.loads(content)["previous"] == PLAN
    assert read(tmp_path) == [{"task_id": "a"}]


# After a crash


def test_file_torn_at_any_byte_keeps_every_complete_record(tmp_path: Path) -> None:
    content = write(tmp_path / "whole")
    ends = [index + 1 for index, byte in enumerate(content) if byte == ord("\n")]
    for offset in range(len(content) + 1):
        directory = tmp_path / str(offset)
        directory.mkdir()
        (directory / RECORDS_FILE).write_bytes(content[:offset])
        complete = sum(end <= offset for end in ends)
        keep = max([0, *(end for end in ends if end <= offset)])
        with opened(directory) as store:
            assert len(list(store.records())) == complete
            if offset == keep:
                assert store.repair is None
            else:
                assert store.repair is not None
                assert store.repair.bytes == offset - keep
                assert store.repair.kept_in.read_bytes() == content[keep:offset]
                assert f"({offset - keep} bytes" in str(store.repair)
                assert store.repair.kept_in.name in str(store.repair)
            append(store, {"task_id": "after"})
        assert read(directory) == [*RECORDS[:complete], {"task_id": "after"}]


def test_second_tear_at_the_same_place_does_not_overwrite_the_first(tmp_path: Path) -> None:
    kept = []
    for tail in (b"first half", b"second half"):
        with (tmp_path / RECORDS_FILE).open("ab") as file:
            file.write(tail)
        with opened(tmp_path) as store:
            assert store.repair is not None
            kept.append(store.repair.kept_in)
    assert [path.read_bytes() for path in kept] == [b"first half", b"second half"]
    assert [path.name for path in kept] == [f"{RECORDS_FILE}.torn-0", f"{RECORDS_FILE}.torn-0.1"]


def test_torn_tail_that_is_larger_than_any_record_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_LINE", 100)
    (tmp_path / RECORDS_FILE).write_bytes(b"x" * 101)
    with pytest.raises(IntegrityError, match="not a torn record"), RecordStore(tmp_path):
        pass
    assert (tmp_path / RECORDS_FILE).stat().st_size == 101


def test_tail_longer_than_one_read_is_found(tmp_path: Path) -> None:
    write(tmp_path)
    with (tmp_path / RECORDS_FILE).open("ab") as file:
        file.write(b"x" * 200_000)
    with opened(tmp_path) as store:
        assert store.repair is not None
        assert store.repair.bytes == 200_000
    assert read(tmp_path) == RECORDS


# One writer

HOLDER = """
import sys; from pathlib import Path; from securebench.records.store import RecordStore
with RecordStore(Path(sys.argv[1])): print("held", flush=True); sys.stdin.read()
"""


def test_directory_held_by_another_process_is_refused_until_it_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="another securebench process"), RecordStore(tmp_path):
            pass
        other.kill()
    write(tmp_path)


def test_directory_is_free_again_after_a_failed_start(tmp_path: Path) -> None:
    (tmp_path / RECORDS_FILE).mkdir()
    with pytest.raises(StoreError), RecordStore(tmp_path):
        pass
    (tmp_path / RECORDS_FILE).rmdir()
    write(tmp_path)


# Tampering


def _swap(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], lines[2]]


@pytest.mark.parametrize(
    "tamper, line",
    [
        (lambda lines: [lines[0].replace(b"first", b"forged"), *lines[1:]], 2),
        (lambda lines: [lines[0], lines[1].replace(b'"b"', b'"x"'), lines[2]], 3),
        (lambda lines: [lines[0].replace(b":", b": ", 1), *lines[1:]], 2),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], lines[2]], 2),
        (_swap, 1),
        (lambda lines: [lines[0], lines[0], *lines[1:]], 2),
        (lambda lines: [*lines, lines[2]], 4),
        (lambda lines: [lines[0], b'{"task_id":"x","previous":"sha256:0"}\n', *lines[1:]], 2),
        (lambda lines: [lines[0], b'{"task_id":"x"}\n', *lines[1:]], 2),
        (lambda lines: [lines[0], b"\n", *lines[1:]], 2),
        (lambda lines: [lines[0], b"nonsense\n", *lines[1:]], 2),
        (lambda lines: [lines[0], b"[]\n", *lines[1:]], 2),
        (lambda lines: [lines[0], b"\xff\n", *lines[1:]], 2),
        (lambda lines: [lines[0], lines[1].replace(b'{"task_id"', b'{"task_id":"x","task_id"'), lines[2]], 2),
        (lambda lines: [lines[0].replace(b"\n", b"\r\n"), *lines[1:]], 2),
    ],
)
def test_tampered_file_is_found_with_its_line(
    tmp_path: Path, tamper: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    lines = write(tmp_path).splitlines(keepends=True)
    (tmp_path / RECORDS_FILE).write_bytes(b"".join(tamper(lines)))
    with opened(tmp_path) as store:
        with pytest.raises(IntegrityError, match=rf"{RECORDS_FILE}:{line}: ") as found:
            list(store.records())
        assert ("of this plan" in str(found.value)) == (line == 1)
        with pytest.raises(StoreError):
            append(store, {"task_id": "d"})


def test_reader_refuses_a_tail_without_end(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b'{"a":1}\n{"b":2}')
    with pytest.raises(IntegrityError, match="r:2: not a complete record"):
        list(read_records(tmp_path / "r"))
    with pytest.raises(StoreError, match="cannot be read"):
        list(read_records(tmp_path / "none"))


# A host that cannot write

FULL_DISK = """
import anyio, resource, signal, sys; from pathlib import Path
from securebench.errors import StoreError; from securebench.records.store import RecordStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main(store):
    await store.append({"task_id": "a"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    async def one(record):
        try: await store.append(record)
        except StoreError as error: print(error, flush=True)
        else: print("acknowledged", record["task_id"], flush=True)
    async with anyio.create_task_group() as group:
        for number in range(int(sys.argv[3])):
            group.start_soon(one, {"task_id": f"b{number}", "text": "x" * 100_000})
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.append({"task_id": "c"})
with RecordStore(Path(sys.argv[1])) as store:
    store.begin(sys.argv[4])
    anyio.run(main, store)
"""


@pytest.mark.parametrize("together", [1, 20])
def test_records_that_do_not_fit_are_taken_back_and_the_chain_goes_on(tmp_path: Path, together: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), "550000", str(together), PLAN],
        capture_output=True,
        text=True,
        check=True,
    )
    acknowledged = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("acknowledged")]
    if together > 1:
        assert f"{RECORDS_FILE}: record could not be written: File too large" in done.stdout
        assert len(acknowledged) < together
    assert [record["task_id"] for record in read(tmp_path)] == ["a", *acknowledged, "c"]


def test_size_of_a_line_is_known_before_it_is_written(tmp_path: Path) -> None:
    assert line_size(encode_record({"text": "ü"})) == len(write(tmp_path, [{"text": "ü"}]))


def test_record_that_could_never_be_read_back_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_LINE", 200)
    with opened(tmp_path) as store:
        with pytest.raises(StoreError, match="too large"):
            append(store, {"text": "x" * 200})
        append(store, {"text": "x" * 50})
    assert len(read(tmp_path)) == 1


def test_line_of_exactly_the_limit_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(write(tmp_path, [{"text": "x" * 500}]))
    monkeypatch.setattr(store_module, "MAX_LINE", size)
    assert len(read(tmp_path)) == 1
    monkeypatch.setattr(store_module, "MAX_LINE", size - 1)
    with pytest.raises(IntegrityError):
        read(tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_records_file_that_is_not_a_file_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / RECORDS_FILE)
    with pytest.raises(StoreError), RecordStore(tmp_path):
        pass


def test_run_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(StoreError, match="cannot be used as a run directory"), RecordStore(tmp_path / "run"):
        pass
