"""The run directory fails while attempts run: it is full, read-only, or gone. Nothing complete is lost, nothing is
blamed on a candidate, and the same command completes the run once the directory is well."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.crash.world import NOTHING, KilledRun, check_chain, leftovers_soon, questions
from tests.e2e.workbench import need_bubblewrap

from securebench.records.seal import open_statement

MIB = 2**20
EXT4_IOC_SHUTDOWN = 0x8004587D
EXT4_GOING_FLAGS_NOLOGFLUSH = 2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of our own."""
    need_bubblewrap()
    if os.geteuid() != 0:
        pytest.skip("mounting a disk needs root")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _fails(run: KilledRun, fail: Callable[[], object]) -> int:
    """Let some records be acknowledged, then let the directory fail; the exit code."""
    engine = run.start()
    deadline = time.monotonic() + 120
    while len(run.events("record_written")) < 5:
        assert engine.poll() is None, run.said()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    fail()
    return engine.wait(120)


def _check_kept(run: KilledRun) -> None:
    assert "Traceback" not in run.log.read_text(), run.said()
    run.check_kept()
    kept = check_chain(run.output, run.records())
    assert len(run.events("record_written")) <= len(kept) < run.total
    assert all(record["passed"] for record in kept), "the disk's fault is no candidate's"


def _completes(run: KilledRun) -> None:
    assert run.finish() == 0, run.said()
    run.check_kept()
    records = check_chain(run.output, run.records())
    assert len(records) == run.total
    assert all(record["passed"] for record in records)
    assert leftovers_soon(run.pids, run.temporary) == NOTHING


def test_a_disk_that_another_process_fills_ends_the_run_and_keeps_every_record(disk: Path, tmp_path: Path) -> None:
    run = KilledRun(tmp_path / "run", questions(120), 1, "sleep 0.1; echo 42", output=disk / "out")

    def fill() -> None:
        """To the last byte, so that the next record does not fit."""
        with (disk / "foreign").open("wb", buffering=0) as file:
            for size in (MIB, 4096, 1):
                with suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    assert _fails(run, fill) == 3
    assert "No space left" in run.said() or "too little to begin another attempt" in run.said()
    _check_kept(run)
    assert run.finish() == 3, run.said()  # still full: said at once, nothing runs
    (disk / "foreign").unlink()
    _completes(run)


def test_a_disk_that_dies_ends_the_run_and_keeps_every_record_that_was_acknowledged(tmp_path: Path) -> None:
    """The file system itself is shut down, as it does by itself on a device that fails: every write is refused."""
    with _ext4(tmp_path) as (mount, shut_down):
        run = KilledRun(tmp_path / "run", questions(120), 1, "sleep 0.1; echo 42", output=mount() / "out")
        assert _fails(run, shut_down) == 3, run.said()
        mount()
        _check_kept(run)
        _completes(run)


@contextmanager
def _ext4(tmp_path: Path) -> Iterator[tuple[Callable[[], Path], Callable[[], object]]]:
    """A real file system in a file: how to mount it again, and how to shut it down."""
    need_bubblewrap()
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("making a file system needs root and mkfs.ext4")
    place, image = tmp_path / "disk", tmp_path / "image"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(192 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)

    def mount() -> Path:
        subprocess.run(["umount", place], check=False, capture_output=True)
        done = subprocess.run(["mount", "-o", "loop", image, place], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no loop device: {done.stderr.strip()}")
        return place

    def shut_down() -> None:
        descriptor = os.open(place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", EXT4_GOING_FLAGS_NOLOGFLUSH))
        finally:
            os.close(descriptor)

    try:
        yield mount, shut_down
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def test_a_directory_that_becomes_read_only_loses_no_record_and_is_sealed_later(disk: Path, tmp_path: Path) -> None:
    """Files that are open go on; no other can be made, so there is neither summary nor seal."""
    run = KilledRun(tmp_path / "run", questions(120), 1, "sleep 0.1; echo 42", output=disk / "out")

    def freeze() -> None:
        subprocess.run(["mount", "--bind", run.output, run.output], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", run.output], check=True)

    try:
        assert _fails(run, freeze) == 3, run.said()
        assert "Read-only file system" in run.said()
        assert "Traceback" not in run.log.read_text(), run.said()
        assert not (run.output / "seal.json").exists()
        run.check_kept()
        assert run.finish() == 3, run.said()  # still read-only: said at once
        assert not run.began()
    finally:
        subprocess.run(["umount", run.output], check=True)
    _completes(run)
    assert open_statement((run.output / "seal.json").read_bytes(), "seal.json").predicate.status == "complete"


def test_a_run_directory_that_is_removed_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    need_bubblewrap()
    run = KilledRun(tmp_path / "run", questions(120), 1, "sleep 0.1; echo 42")
    began = time.monotonic()
    assert _fails(run, lambda: shutil.rmtree(run.output)) == 3, run.said()
    assert time.monotonic() - began < 120
    assert "no such file or directory" in run.said().lower() or "was removed" in run.said()
    assert "Traceback" not in run.log.read_text(), run.said()
    assert not run.output.exists(), "a run directory that somebody removed is not made again half empty"
    assert leftovers_soon(run.pids, run.temporary) == NOTHING
    _completes(run)


def test_a_run_directory_that_is_moved_ends_the_run_and_goes_on_where_it_lies(tmp_path: Path) -> None:
    need_bubblewrap()
    run = KilledRun(tmp_path / "run", questions(120), 1, "sleep 0.1; echo 42")
    moved = tmp_path / "moved"
    assert _fails(run, lambda: run.output.rename(moved)) == 3, run.said()
    assert "Traceback" not in run.log.read_text(), run.said()
    moved.rename(run.output)
    _check_kept(run)
    _completes(run)
