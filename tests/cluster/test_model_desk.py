"""What the head believes of a node whose agent asks models, and what it tells one."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest
from tests.cluster.model_world import config_of
from tests.upstreams import KEY

from securebench.candidates.store import CandidateStore
from securebench.cluster import frames
from securebench.cluster.desk import ModelDesk, open_desk
from securebench.cluster.opening import _Same
from securebench.cluster.setup import Machine, NodeReport, NodeSetup
from securebench.cluster.shipping import StoredContents
from securebench.cluster.streams import WINDOW
from securebench.cluster.talk import Talk
from securebench.engine.executors.wire import Frame
from securebench.errors import ConfigError, FailureReason, IntegrityError, ProducerError
from securebench.harnesses.base import Production
from securebench.harnesses.models import open_broker


class Said:
    """A link that keeps what is said, and never says anything."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    async def send(self, kind: int, number: int = 0, data: bytes = b"") -> None:
        self.frames.append(Frame(kind, number, data))

    async def receive(self) -> Frame | None:
        return None


@asynccontextmanager
async def desk_of(directory: Path, asked: bool = True) -> AsyncIterator[tuple[ModelDesk, Talk, Said]]:
    said = Said()
    with closing(Talk(said, 1, StoredContents(CandidateStore(directory / "candidates")))) as talk:
        async with (
            open_broker(config_of(directory, 1, "")) as broker,
            open_desk(broker, "t1", anyio.Semaphore(64)) as desk,
        ):
            if asked:
                await desk.models(talk)
            yield desk, talk, said


def about(stream: int, data: bytes = b"") -> bytes:
    return struct.pack("<I", stream) + data


def hostile(*told: tuple[int, bytes]) -> Callable[[Path], Awaitable[None]]:
    async def main(directory: Path) -> None:
        async with desk_of(directory) as (_, talk, _said):
            for kind, data in told:
                await talk.heard(Frame(kind, 1, data))

    return main


VIOLATIONS = {
    "more bytes than there is room for": [
        (frames.OPEN, about(1)),
        (frames.BYTES, about(1, b"x" * WINDOW)),
        (frames.BYTES, about(1, b"x")),
    ],
    "room that nobody gave": [(frames.OPEN, about(1)), (frames.TAKEN, about(1, struct.pack("<I", 1)))],
    "the same connection twice": [(frames.OPEN, about(1)), (frames.OPEN, about(1))],
    "more connections than an agent may have": [(frames.OPEN, about(number)) for number in range(1, 66)],
    "about no connection": [(frames.OPEN, b"1")],
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_node_that_does_not_keep_to_the_rules_is_refused(name: str, tmp_path: Path) -> None:
    told = VIOLATIONS[name]
    with pytest.raises(IntegrityError):
        anyio.run(hostile(*told), tmp_path)
    anyio.run(hostile(*told[:-1]), tmp_path)  # up to there it kept to them


def test_what_comes_late_for_a_connection_that_is_over_is_dropped(tmp_path: Path) -> None:
    anyio.run(hostile((frames.BYTES, about(7, b"x" * 2 * WINDOW)), (frames.CLOSE, about(8))), tmp_path)


def test_models_are_asked_for_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_of(tmp_path) as (desk, talk, said):
            (told,) = said.frames
            assert told.kind == frames.MODELS
            assert b"sk-securebench-" in told.data
            assert KEY.encode() not in told.data
            with pytest.raises(IntegrityError):
                await desk.models(talk)

    anyio.run(main)


def test_what_was_used_is_told_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_of(tmp_path) as (desk, talk, _said):
            desk.account(talk)
            with pytest.raises(IntegrityError, match="asks again"):
                desk.account(talk)

    anyio.run(main)


def test_a_node_that_is_told_of_no_models_may_not_ask_for_any(tmp_path: Path) -> None:
    async def main() -> None:
        with closing(Talk(Said(), 1, StoredContents(CandidateStore(tmp_path)))) as talk:
            async with open_desk(None, "t1", anyio.Semaphore(64)) as desk:
                with pytest.raises(IntegrityError):
                    await desk.models(talk)
                with pytest.raises(IntegrityError):
                    desk.account(talk)

    anyio.run(main)


def test_use_of_models_is_what_the_broker_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_of(tmp_path) as (desk, _talk, _said):
            assert desk.session is not None
            used = desk.session.usage.as_json()
            assert desk.check(Production(None, usage=used)) == used
            assert desk.check(Production(None)) == used, "also of an attempt on which our own code tripped"
            with pytest.raises(IntegrityError, match="another use"):
                desk.check(Production(None, usage={**used, "requests": 7}))

    anyio.run(main)


def test_a_budget_that_was_used_up_is_not_passed_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_of(tmp_path) as (desk, _talk, _said):
            assert desk.session is not None
            desk.session._run_out("attempt.requests")
            with pytest.raises(IntegrityError, match="budget"):
                desk.check(Production(None))
            desk.check(Production(None, failure=ProducerError(FailureReason.BUDGET_EXHAUSTED, "")))

    anyio.run(main)


def report(tools: dict[str, str], images: dict[str, str] | None = None) -> NodeReport:
    machine = Machine(cpus=1, memory=1, disk=1, kernel="", architecture="", python="")
    return NodeReport(
        key="ed25519:" + "0" * 64,
        machine=machine,
        backend=None,
        why_not=None,
        roots=(),
        images=images or {},
        audit=None,
        tools=tools,
    )


@pytest.mark.parametrize("other", [{"codex 1.0": "sha256:b"}, {"codex 1.1": "sha256:a"}])
def test_a_node_with_another_build_or_version_of_the_agent_s_tool_takes_no_part(other: dict[str, str]) -> None:
    same = _Same({})
    assert same.problem(report({})) is None, "one that only verifies has none"
    assert same.problem(report({"codex 1.0": "sha256:a"})) is None
    assert same.problem(report({"codex 1.0": "sha256:a"})) is None
    assert "codex 1.0 (sha256:a)" in (same.problem(report(other)) or "")


def test_a_node_is_told_neither_keys_nor_where_models_are(tmp_path: Path) -> None:
    config = config_of(tmp_path, 4711, "")
    told = NodeSetup.of(config, (None,), role="both", unsafe=False)
    assert told.models
    assert told.env == {"GREETING": "hello"}
    for secret in ("4711", "THE_KEY", KEY):
        assert secret.encode() not in told.encode()


def test_a_key_under_another_name_goes_to_no_node(tmp_path: Path) -> None:
    config = config_of(tmp_path, 4711, "", environment={"THE_KEY": "abcdefgh-12345", "GREETING": "say abcdefgh-12345"})
    with pytest.raises(ConfigError, match="a key of this run"):
        NodeSetup.of(config, (None,), role="both", unsafe=False)
