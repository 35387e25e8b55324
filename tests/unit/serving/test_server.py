"""Time and places: what is slow, silent or too much is bounded, and stopping is in order."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from tests.e2e.served import TOKEN
from tests.unit.serving.running import Running, ended, running

from securebench.egress.crowd import Crowd
from securebench.engine.executors.local import LocalExecutor
from securebench.errors import ConfigError, InfrastructureError, IntegrityError
from securebench.grading import Grader
from securebench.serving.limits import ServeLimits
from securebench.serving.server import listen
from securebench.serving.service import Service
from securebench.verifiers.base import VerificationResult

ITEM = {"task": "t1", "candidate": "Answer: 42"}
BODY = json.dumps(ITEM).encode()
JSON = {"Content-Type": "application/json"}
HEAD = (
    f"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
).encode()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Verdicts come only after this is set."""
    go = anyio.Event()
    judge = Grader.grade

    async def later(grader: Grader, task: str, candidate: str, **how: Any) -> VerificationResult:
        await go.wait()
        return await judge(grader, task, candidate, **how)

    monkeypatch.setattr(Grader, "grade", later)
    return go


async def _until(condition: Any, seconds: float = 60.0) -> None:
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.01)


def test_slow_heads_bodies_and_silence_are_ended(tmp_path: Path) -> None:
    limits = ServeLimits(head_seconds=2, body_seconds=2.5, idle_seconds=3)

    async def main() -> None:
        async with running(tmp_path, limits) as here:
            with here.connect() as silent, here.connect() as head, here.connect() as body:
                head.send(HEAD[:40])
                body.send(HEAD + BODY[:5])
                assert await ended(head, 9)  # each of them well before it would by default
                assert await ended(body, 30)
                assert await ended(silent, 30)
            async with here.client() as client:
                assert (await client.post("/v1/grade", json=ITEM)).json()["passed"]

    anyio.run(main)


REFUSED = b"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


async def _answered_beside(here: Running, count: int, say: bytes, seconds: float) -> bool:
    """Whether an honest client is answered in time beside so many connections that say no more than this."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(here.connect()).send(say)
        await anyio.sleep(0.2)
        with anyio.move_on_after(seconds):
            async with here.client() as client:
                return (await client.get("/readyz")).status_code == 200
    return False


@pytest.mark.parametrize("say", [b"", REFUSED], ids=["silent", "refused, with a body that never comes"])
def test_connections_that_ask_for_nothing_keep_nobody_out(
    say: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ServeLimits(connections=4, head_seconds=600, body_seconds=600, idle_seconds=600)  # nobody goes by himself

    async def main(seconds: float) -> bool:
        async with running(tmp_path / str(time.time_ns()), limits) as here:
            return await _answered_beside(here, 20, say, seconds)

    monkeypatch.setattr("securebench.serving.conversation._SKIPPED_SECONDS", 600)

    async def patient(crowd: Crowd) -> None:
        while crowd._inside >= crowd._most:
            await crowd._left.wait()

    assert anyio.run(main, 60)
    monkeypatch.setattr(Crowd, "room", patient)
    assert not anyio.run(main, 2), "positive control: where nobody has to go, they do"


def test_bodies_of_all_together_are_bounded(tmp_path: Path) -> None:
    limits = ServeLimits(bodies_bytes=300_000, body_bytes=250_000, body_seconds=120)
    large = json.dumps({"task": "t1", "candidate": "x" * 200_000}).encode()
    head = HEAD.replace(str(len(BODY)).encode(), str(len(large)).encode())

    async def main() -> list[int]:
        async with running(tmp_path, limits) as here, here.client() as client:
            with here.connect() as half:
                half.send(head)
                half.send(large[:150_000])
                await _until(lambda: here.server._room.free < 200_000)
                first = await client.post("/v1/grade", content=large, headers=JSON)
            await _until(lambda: here.server._room.free == 300_000)
            again = await client.post("/v1/grade", content=large, headers=JSON)
            over = await client.post("/v1/grade", content=b"x" * 255_000, headers=JSON)
            assert (first.headers["retry-after"], first.json()["error"]["code"]) == ("1", "too_many")
            return [first.status_code, again.status_code, over.status_code]

    assert anyio.run(main) == [429, 200, 413]


def test_beyond_the_queue_it_is_come_back_later_and_places_are_given_back(tmp_path: Path, held: anyio.Event) -> None:
    async def main() -> None:
        limits = ServeLimits(queue=4, batch=4)
        async with running(tmp_path, limits) as here, here.client() as client:
            codes: list[int] = []

            async def one() -> None:
                codes.append((await client.post("/v1/grade", json=ITEM)).status_code)

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(one)
                await _until(lambda: here.service.pending == 4)
                refused = await client.post("/v1/grade", json=ITEM)
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
                many = await client.post("/v1/grade/batch", json={"items": [ITEM] * 2})
                assert many.status_code == 429
                assert here.service.pending == 4
                held.set()
            assert codes == [200] * 4
            assert (await client.post("/v1/grade/batch", json={"items": [ITEM] * 4})).status_code == 200
            assert here.service.pending == 0

    anyio.run(main)


@pytest.mark.parametrize("candidate", [None, 7, ["x"], {}, {"text": "x"}, {"completion": "x", "solution": "y"}])
def test_what_is_no_candidate_is_told_in_one_sentence(tmp_path: Path, candidate: Any) -> None:
    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            one = await client.post("/v1/grade", json={"task": "t1", "candidate": candidate})
            many = await client.post("/v1/grade/batch", json={"items": [ITEM, {"task": "t1", "candidate": candidate}]})
            words = "expected text, or an object with completion, solution, model_patch or model_reply, text or null"
            assert (one.status_code, one.json()["error"]["message"]) == (422, f"candidate: {words}")
            assert many.json()["error"]["message"] == f"items.1.candidate: {words}"

    anyio.run(main)


def test_replies_and_nothing_are_judged_as_in_samples_files(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            reply = await client.post("/v1/grade", json={"task": "t1", "candidate": {"model_reply": "Answer: 42"}})
            assert reply.json()["passed"]
            nothing = await client.post("/v1/grade", json={"task": "t1", "candidate": {"solution": None}})
            assert nothing.json()["failure_reason"] == "no_candidate"

    anyio.run(main)


def test_counters_keep_all_their_digits(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            here.service.counts.verdicts, here.service.counts.seconds = 123456789, 1234567.125
            lines = (await client.get("/metrics")).text.splitlines()
            assert "securebench_verdict_seconds_count 123456789" in lines
            assert "securebench_verdict_seconds_sum 1234567.125" in lines
            assert "securebench_ready 1" in lines

    anyio.run(main)


def test_come_back_after_the_time_that_the_queue_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two batches share the places: what counts is how fast verdicts come, not how long each of them waited."""
    judge = Grader.grade

    async def slow(grader: Grader, task: str, candidate: str, **how: Any) -> VerificationResult:
        await anyio.sleep(0.8)
        return await judge(grader, task, candidate, **how)

    monkeypatch.setattr(Grader, "grade", slow)

    async def main() -> tuple[int, float]:
        limits = ServeLimits(queue=100, batch=100)
        async with running(tmp_path, limits) as here, here.client() as client, anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: client.post("/v1/grade/batch", json={"items": [ITEM] * 50}))
            await _until(lambda: here.service.counts.verdicts > 40)
            began = time.monotonic()
            refused = await client.post("/v1/grade", json=ITEM)
            await _until(lambda: here.service.pending == 0, 120)
            return int(refused.headers["retry-after"]), time.monotonic() - began

    told, took = anyio.run(main)
    assert took / 2 <= told <= 2 * took + 1


def test_no_verdict_in_time_is_told_and_not_scored(tmp_path: Path, held: anyio.Event) -> None:
    async def main() -> None:
        async with running(tmp_path, ServeLimits(request_seconds=0.3)) as here, here.client() as client:
            answer = await client.post("/v1/grade", json=ITEM)
            assert (answer.status_code, answer.json()["error"]["code"]) == (504, "too_slow")
            many = await client.post("/v1/grade/batch", json={"items": [ITEM] * 3})
            lines = [json.loads(line) for line in many.text.splitlines()]
            assert sorted(line["index"] for line in lines) == [0, 1, 2]
            assert {(line["verdict"], line["error"]["code"]) for line in lines} == {(None, "too_slow")}
            assert here.service.pending == 0

    anyio.run(main)


def test_client_that_leaves_frees_its_place(tmp_path: Path, held: anyio.Event) -> None:
    async def main() -> None:
        async with running(tmp_path) as here:
            with here.connect() as leaver:
                leaver.send(HEAD + BODY)
                await _until(lambda: here.service.pending == 1)
            await _until(lambda: here.service.connections == 0)
            assert (here.service.pending, here.service.counts.lost) == (0, 1)

    anyio.run(main)


def test_what_was_taken_in_is_finished_when_it_stops(tmp_path: Path, held: anyio.Event) -> None:
    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client, here.client() as other:
            answers: list[httpx2.Response] = []

            async def batch() -> None:
                answers.append(await client.post("/v1/grade/batch", json={"items": [ITEM] * 5}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(batch)
                await _until(lambda: here.service.pending == 5)
                assert (await other.get("/readyz")).status_code == 200
                here.server.stop()
                await _until(lambda: here.service.stopping)
                with pytest.raises(httpx2.TransportError):
                    await other.get("/readyz")
                held.set()
            assert sum(json.loads(line)["verdict"]["passed"] for line in answers[0].text.splitlines()) == 5

    anyio.run(main)


def test_our_own_mistake_ends_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            with monkeypatch.context() as patch:
                patch.setattr(Service, "check", lambda *_: 1 / 0)
                answer = await client.post("/v1/grade", json=ITEM)
                assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
            assert (await client.post("/v1/grade", json=ITEM)).json()["passed"]
            assert "ZeroDivisionError" in here.said[0]

    anyio.run(main)


def test_fault_of_the_host_is_told_to_the_operator_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> VerificationResult:
        raise InfrastructureError("the disk at /var/lib/secret is gone")

    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            monkeypatch.setattr(Grader, "grade", broken)
            answer = await client.post("/v1/grade", json=ITEM)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "infrastructure")
            assert "disk" not in answer.text
            many = await client.post("/v1/grade/batch", json={"items": [ITEM]})
            assert json.loads(many.text)["error"]["code"] == "infrastructure"
            assert "the disk" in here.said[0]

    anyio.run(main)


def test_server_whose_judges_are_gone_for_good_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("securebench.serving.server._LOOK_SECONDS", 8.0)

    async def main() -> None:
        async with running(tmp_path) as here, here.client() as client:
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            monkeypatch.setattr(LocalExecutor, "fault", IntegrityError("the pack changed"))
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()) == (503, {"status": "failed"})
            answer = await client.post("/v1/grade", json=ITEM)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
            assert "securebench_ready 0" in (await client.get("/metrics")).text
            await anyio.sleep(60)

    with pytest.raises(InfrastructureError, match="nothing can be judged any more: the pack changed"):
        anyio.run(main)


@pytest.mark.parametrize("host", ["example.org", "", "127.0.0.1.", "1.2.3"])
def test_only_an_address_can_be_listened_on(host: str) -> None:
    with pytest.raises(ConfigError, match="--host"):
        listen(host, 0)


def test_address_of_another_machine_is_a_fault_of_the_host() -> None:
    with pytest.raises(InfrastructureError, match="cannot listen"):
        listen("192.0.2.1", 0)
