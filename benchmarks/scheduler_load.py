"""Placing alone: the real `Cluster`, nodes that have joined, attempts that take a share and give it back at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio

from securebench.candidates.store import CandidateStore
from securebench.cluster.members import Cluster, Member
from securebench.cluster.placement import Need
from securebench.cluster.setup import NodeReport
from securebench.cluster.shipping import StoredContents
from simulated_nodes import MACHINE

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Load:
    """So many attempts under way or waiting, which need one of so many different things."""

    title: str
    at_once: int
    needs: int = 1
    rare: bool = False  # the image is on one node in a hundred


LOADS = (
    Load("half the nodes are free", 500),
    Load("full, 1,000 wait", 2000),
    Load("full, 10,000 wait", 11_000),
    Load("full, 1,000 wait, 20 kinds of need", 2000, 20),
    Load("full, 1,000 wait, each needs another", 2000, 1000),
    Load("an image that 1 node in 100 has, 10 wait", 20, rare=True),
)


def _report(images: tuple[str | None, ...]) -> NodeReport:
    return NodeReport(
        key="ed25519:" + "0" * 64,
        machine=MACHINE,
        backend="b",
        why_not=None,
        roots=images,
        images={},
        audit=None,
        tools={},
    )


def _cluster(nodes: int, directory: Path) -> Cluster:
    contents = StoredContents(CandidateStore(directory))
    cluster = Cluster(lambda _: cast(Any, None), contents, notice=lambda _: None, patience=120.0)
    for number in range(nodes):
        images = (None,) if number % 100 else (None, "rare")
        cluster._join(Member(f"node-{number}", _report(images), cast(Any, None)), "both", 1.0)
    return cluster


def _needs(load: Load, count: int) -> Iterator[Need]:
    for number in range(count):
        yield Need("verify", 1.0, GIB + number % load.needs, image="rare" if load.rare else None)


async def _placed(load: Load, nodes: int, count: int, directory: Path) -> float:
    cluster, needs = _cluster(nodes, directory), _needs(load, count)

    async def lane() -> None:
        for need in needs:
            async with cluster.placed(need):
                await anyio.sleep(0)

    return await _microseconds(lane, load.at_once, count)


async def _limited(load: Load, nodes: int, count: int) -> float:
    """The same attempts behind nothing but a counter."""
    limiter, needs = anyio.CapacityLimiter(nodes), _needs(load, count)

    async def lane() -> None:
        for _ in needs:
            async with limiter:
                await anyio.sleep(0)

    return await _microseconds(lane, load.at_once, count)


async def _microseconds(lane: Any, at_once: int, count: int) -> float:
    """Of processor time per attempt."""
    began = time.process_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(at_once):
            tasks.start_soon(lane)
    return (time.process_time() - began) * 1e6 / count


def scheduler(nodes: int, count: int) -> list[dict[str, Any]]:
    rows = []
    with TemporaryDirectory(prefix="scale-") as name:
        for load in LOADS:
            plain = anyio.run(_limited, load, nodes, count)
            ours = anyio.run(_placed, load, nodes, count, Path(name))
            rows.append({"load": load.title, "us": ours, "limiter_us": plain, "ratio": ours / plain})
    return rows
