"""Many appenders, one writer: synced together, in the order of the calls, acknowledged only when on disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from securebench._canonical import digest_bytes
from securebench.errors import IntegrityError, StoreError
from securebench.records import _durable
from securebench.records.store import RecordStore, read_records

PLAN = digest_bytes(b"the plan")


@contextmanager
def opened(directory: Path) -> Iterator[RecordStore]:
    with RecordStore(directory) as store:
        store.begin(PLAN)
        list(store.records())
        yield store


def ids(directory: Path) -> list[str]:
    with opened(directory) as store:
        return [record["task_id"] for record in store.records()]


class Disk:
    """`os.fsync`, counted, slowed down, or failing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.fail = 0
        self.pause = 0.0
        self.hold = threading.Event()
        self.hold.set()
        self._real = os.fsync
        monkeypatch.setattr(_durable.os, "fsync", self._fsync)

    def _fsync(self, descriptor: int) -> None:
        self.hold.wait(60)
        time.sleep(self.pause)
        self.syncs += 1
        if self.fail:
            self.fail -= 1
            raise OSError(28, os.strerror(28))
        self._real(descriptor)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_64_appenders_need_far_fewer_syncs_than_records(tmp_path: Path, disk: Disk) -> None:
    async def main(store: RecordStore) -> None:
        async def work(worker: int) -> None:
            for number in range(20):
                await store.append({"task_id": f"{worker}-{number}"})

        async with anyio.create_task_group() as group:
            for worker in range(64):
                group.start_soon(work, worker)

    with opened(tmp_path) as store:
        before, disk.pause = disk.syncs, 0.01
        anyio.run(main, store)
        assert store.count == 1280
        assert disk.syncs - before < 1280 / 8
        assert store.size == (tmp_path / "candidates.jsonl").stat().st_size
        assert store.state.sha256 == digest_bytes((tmp_path / "candidates.jsonl").read_bytes())[7:]
        assert store.head == digest_bytes(list(read_records(store.path))[-1][1])
    assert len(set(ids(tmp_path))) == 1280


def test_order_of_lines_is_the_order_of_calls(tmp_path: Path) -> None:
    async def main(store: RecordStore) -> None:
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(store.append, {"task_id": str(number)})

    with opened(tmp_path) as store:
        anyio.run(main, store)
    assert ids(tmp_path) == [str(number) for number in range(200)]


def test_line_is_acknowledged_only_when_it_is_on_disk(tmp_path: Path, disk: Disk) -> None:
    seen: list[tuple[str, int]] = []

    async def main(store: RecordStore) -> None:
        async def one(name: str) -> None:
            await store.append({"task_id": name})
            seen.append((name, store.count))

        disk.hold.clear()
        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(one, name)
            await anyio.sleep(0.1)
            assert seen == []
            assert store.count == 0
            disk.hold.set()

    with opened(tmp_path) as store:
        anyio.run(main, store)
    assert sorted(name for name, _ in seen) == ["a", "b", "c"]
    assert all(count >= number for number, (_, count) in enumerate(seen, 1))


def test_failed_batch_is_taken_back_whole_and_every_waiter_learns_it(tmp_path: Path, disk: Disk) -> None:
    outcome: dict[str, str] = {}

    async def main(store: RecordStore) -> None:
        async def one(name: str) -> None:
            try:
                await store.append({"task_id": name})
                outcome[name] = "written"
            except StoreError as error:
                outcome[name] = str(error)

        await one("first")
        disk.hold.clear()
        disk.fail = 1  # of the batch; taking it back works
        async with anyio.create_task_group() as group:
            for name in ("a", "b", "c"):
                group.start_soon(one, name)
            await anyio.sleep(0.05)
            disk.hold.set()
        await one("last")

    with opened(tmp_path) as store:
        anyio.run(main, store)
    lost = [name for name, text in outcome.items() if "No space left" in text]
    assert lost
    assert ids(tmp_path) == [name for name in ("first", "a", "b", "c", "last") if name not in lost]
    assert {outcome[name] for name in ids(tmp_path)} == {"written"}


def test_nothing_is_written_behind_what_could_not_be_taken_back(tmp_path: Path, disk: Disk) -> None:
    async def main(store: RecordStore) -> None:
        await store.append({"task_id": "a"})
        disk.fail = 2
        with pytest.raises(StoreError, match="could not be written"):
            await store.append({"task_id": "b"})
        with pytest.raises(StoreError, match="can no longer be written: what failed could not be taken back"):
            await store.append({"task_id": "c"})

    with opened(tmp_path) as store:
        anyio.run(main, store)
    assert ids(tmp_path)[0] == "a"
    assert "c" not in ids(tmp_path)


def test_cancelling_does_not_lose_an_attempt_that_is_done(tmp_path: Path, disk: Disk) -> None:
    async def main(store: RecordStore) -> None:
        disk.hold.clear()
        async with anyio.create_task_group() as group:
            for name in "abcd":
                group.start_soon(store.append, {"task_id": name})
            await anyio.sleep(0.05)
            group.cancel_scope.cancel()
            disk.hold.set()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.append({"task_id": "after"})

    with opened(tmp_path) as store:
        anyio.run(main, store)
        assert store.count == 5
    assert ids(tmp_path) == [*"abcd", "after"]


def test_store_works_while_all_worker_threads_are_busy(tmp_path: Path) -> None:
    done = threading.Event()

    async def main(store: RecordStore) -> None:
        limiter = anyio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, done.wait, 60)
            await anyio.sleep(0.05)
            with anyio.fail_after(30):
                await store.append({"task_id": "a"})
            done.set()

    with opened(tmp_path) as store:
        anyio.run(main, store)
    assert ids(tmp_path) == ["a"]


def test_reading_while_others_append_sees_whole_records(tmp_path: Path) -> None:
    async def main(store: RecordStore) -> None:
        async def read() -> None:
            for _ in range(20):
                await anyio.to_thread.run_sync(lambda: list(store.records()))

        async def work() -> None:
            for number in range(100):
                await store.append({"task_id": str(number), "text": "x" * 5000})

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(work)

    with opened(tmp_path) as store:
        anyio.run(main, store)
        assert store.count == 100
    assert len(ids(tmp_path)) == 100


async def _append(store: RecordStore, record: dict[str, Any]) -> None:
    await store.append(record)


def test_chain_must_be_begun_once_and_first(tmp_path: Path) -> None:
    with RecordStore(tmp_path) as store:
        with pytest.raises(StoreError):
            anyio.run(_append, store, {"task_id": "a"})
        with pytest.raises(StoreError, match="where the chain begins was not said"):
            list(store.records())
        store.begin(PLAN)
        with pytest.raises(StoreError, match="has begun already"):
            store.begin(PLAN)
        assert (store.head, store.count, store.size) == (PLAN, 0, 0)
        anyio.run(_append, store, {"task_id": "a"})
    with RecordStore(tmp_path) as store:
        store.begin(digest_bytes(b"another plan"))
        with pytest.raises(IntegrityError, match=r"candidates\.jsonl:1: is not the first record of this plan"):
            list(store.records())
    with pytest.raises(StoreError, match="closed"):
        anyio.run(_append, _closed(tmp_path), {"task_id": "b"})


def _closed(directory: Path) -> RecordStore:
    with opened(directory) as store:
        return store
