"""Images that are not here: fetched once before a run, told as it happens, kept to exactly what arrived."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.conformance.sandbox.box import processes_with, text
from tests.docker.engine import IMAGE, Imaged, docker, said
from tests.docker.registry import Registry, Stub, forget, free_port, real_registry, stub_registry
from tests.e2e.workbench import Finished, Workbench, question

from securebench.errors import SandboxUnavailable
from securebench.sandboxes._docker import probe as _docker_probe
from securebench.sandboxes._docker import pull as _docker_pull
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes._docker.image import Image
from securebench.sandboxes.base import ISOLATED, Command, Guarantee, ImageRoot, SandboxSpec, run_once
from securebench.sandboxes.docker import DockerSandbox
from securebench.sandboxes.select import select_sandbox

ABSENT = "sha256:" + "0" * 64


@pytest.fixture(scope="module")
def registry(sandbox: Imaged, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    if shutil.which("docker-registry") is None:
        reason = "docker-registry is not installed: run scripts/ci-docker"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    with real_registry(tmp_path_factory.mktemp("registry")) as made:
        yield made


@pytest.fixture(scope="module")
def stocked(registry: Registry) -> Registry:
    """It has tasks/one:1 and nothing like it."""
    registry.push("tasks/one:1", "42")
    return registry


@pytest.fixture
def pushed(registry: Registry) -> Iterator[tuple[str, str]]:
    """(name, digest) of an image that the registry has and this host has not."""
    name = f"tasks/t{time.time_ns()}:1"
    digest = registry.push(name, "42")
    reference = f"{registry.host}/{name}"
    assert docker("image", "inspect", reference).returncode != 0
    yield reference, digest
    forget(reference, _pinned(reference, digest))


def _pinned(reference: str, digest: str) -> str:
    return f"{reference.rpartition(':')[0]}@{digest}"


def _run(
    directory: Path, image: str, *args: str, backend: str = "docker", **sandbox: str
) -> tuple[Workbench, Finished]:
    """A pack with one task on `image`, run by the command line. The image knows the answer."""
    (directory / "manifest.yaml").write_text("id: pull\nversion: 1\n")
    (directory / "tasks.jsonl").write_text(json.dumps(question(1, environment={"image": image})) + "\n")
    tester: dict[str, Any] = {
        "schema_version": "0.3",
        "run": {"id": "pull-run", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": "cat /etc/answer"}},
        "sandbox": {"backend": backend, **sandbox},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    work = Workbench(directory)
    return work, work.run(*args)


@pytest.mark.parametrize("backend", ["docker", "auto"])
def test_pack_runs_on_an_image_that_has_to_be_pulled(
    pushed: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.setenv("SECUREBENCH_HOME", str(tmp_path / "home"))
    reference, digest = pushed
    work, done = _run(tmp_path, reference, backend=backend)
    assert done.code == 0, done.err
    assert f"note: pulling image {reference}\n" in done.err
    assert f"note: pulled image {reference}: {digest}\n" in done.err
    [record] = work.records()
    assert record["passed"], record
    identity = said("image", "inspect", "--format={{.Id}}", reference)
    assert record["digests"]["image"] == identity
    fingerprint = record["producer_metadata"]["fingerprint"]
    assert (fingerprint["image_digest"], fingerprint["image_reference"]) == (digest, reference)
    _, again = _run(tmp_path, reference, "--output-dir", str(tmp_path / "again"), backend=backend)
    assert again.code == 0, again.err
    assert "pulling" not in again.err


def test_progress_for_machines_comes_as_events(pushed: tuple[str, str], tmp_path: Path) -> None:
    reference, digest = pushed
    _, done = _run(tmp_path, reference, "--progress", "json")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.err.splitlines()]
    notices = [event["message"] for event in events if event["event"] == "run_notice"]
    assert notices[0] == f"pulling image {reference}"
    assert f"pulled image {reference}: {digest}" in notices


def test_a_pinned_name_gets_exactly_that_digest(registry: Registry, pushed: tuple[str, str], tmp_path: Path) -> None:
    """The tag leads elsewhere by now; the digest does not."""
    reference, digest = pushed
    other = registry.push(reference.partition("/")[2], "41")
    assert other != digest
    work, done = _run(tmp_path, _pinned(reference, digest), "--publishable")
    assert done.code == 0, done.err
    [record] = work.records()
    assert record["passed"], record
    assert record["producer_metadata"]["fingerprint"]["image_digest"] == digest


def test_a_tag_that_moves_after_the_pull_changes_nothing(pushed: tuple[str, str], sandbox: Imaged) -> None:
    reference, digest = pushed
    root = ImageRoot(reference)

    async def main() -> str:
        backend = DockerSandbox()
        await backend.fetch(root, lambda _: None)
        said("tag", IMAGE, reference)
        result = await run_once(backend, SandboxSpec(root=root), Command(("/bin/cat", "/etc/answer")))
        assert result.fingerprint["image_digest"] == digest
        return text(result)

    assert anyio.run(main) == "42"


def test_layers_are_counted(pushed: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_docker_pull, "_TELL_SECONDS", 0.001)
    lines: list[str] = []
    anyio.run(DockerSandbox().fetch, ImageRoot(pushed[0]), lines.append)
    assert any("2 layers" in line for line in lines), lines


def test_an_engine_without_any_image_can_still_fetch_one(
    pushed: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Walls are looked at with an image that is there; the first one there can be the one that is fetched."""
    local = _docker_probe._local_images
    looked: list[int] = []

    async def none_at_first(client: Client) -> list[Image]:
        looked.append(1)
        return await local(client) if len(looked) > 1 else []

    monkeypatch.setattr(_docker_probe, "_local_images", none_at_first)

    async def main() -> str:
        chosen = await select_sandbox("docker", ISOLATED, (ImageRoot(pushed[0]),), None, lambda _: None)
        return chosen.reason

    assert "in docker" in anyio.run(main)


NO_LOGIN = {"WWW-Authenticate": 'Basic realm="here"'}
BUSY = json.dumps({"errors": [{"code": "TOOMANYREQUESTS", "message": "rate limit"}]}).encode()


@pytest.mark.parametrize(
    ("stub", "words", "remedy"),
    [
        (Stub(401, NO_LOGIN), "does not give it to this user", "docker login"),
        (Stub(429, {"Content-Type": "application/json"}, BUSY), "refuses more pulls for now", "docker load"),
        (Stub(500, {}, b"oops"), "answered with an error", "Try again later"),
    ],
    ids=["login", "rate limit", "broken"],
)
def test_a_registry_that_refuses(sandbox: Imaged, tmp_path: Path, stub: Stub, words: str, remedy: str) -> None:
    with stub_registry(stub):
        work, done = _run(tmp_path, f"{stub.host}/tasks/one:1")
    _refused(work, done, words, remedy)
    assert stub.requests


@pytest.mark.parametrize("name", ["tasks/one:2", "tasks/other:1", f"tasks/one@{ABSENT}"], ids=["tag", "name", "digest"])
def test_a_registry_that_has_it_not(stocked: Registry, tmp_path: Path, name: str) -> None:
    work, done = _run(tmp_path, f"{stocked.host}/{name}")
    _refused(work, done, "the registry has no such image", "Check name, tag and digest")


@pytest.mark.parametrize("backend", ["docker", "auto"])
def test_a_registry_that_is_down(sandbox: Imaged, tmp_path: Path, backend: str) -> None:
    work, done = _run(tmp_path, f"127.0.0.1:{free_port()}/tasks/one:1", backend=backend)
    _refused(work, done, "the registry cannot be reached", "docker load")
    assert ("bubblewrap does not offer it" in done.err) == (backend == "auto")


def _refused(work: Workbench, done: Finished, words: str, remedy: str) -> None:
    assert done.code == 3, done.err
    assert words in done.err
    assert remedy in done.err
    assert "Traceback" not in done.err
    assert not work.output.exists()


@pytest.fixture
def watched() -> Iterator[Stub]:
    """A registry that notices being asked."""
    with stub_registry(Stub(404)) as stub:
        yield stub


@pytest.mark.parametrize("backend", ["docker", "auto"])
def test_a_run_that_must_not_pull_asks_no_registry(
    sandbox: Imaged, watched: Stub, tmp_path: Path, backend: str
) -> None:
    image = f"{watched.host}/tasks/one:1"
    work, done = _run(tmp_path, image, backend=backend, pull="never")
    _refused(work, done, f"image {image} cannot be run", "sandbox.pull: missing")
    assert f"docker pull {image}" in done.err
    assert not watched.requests


def test_a_run_that_may_pull_asks(sandbox: Imaged, watched: Stub, tmp_path: Path) -> None:
    """The positive control."""
    _run(tmp_path, f"{watched.host}/tasks/one:1", pull="missing")
    assert watched.requests


def test_nothing_but_fetch_pulls(sandbox: Imaged, watched: Stub) -> None:
    root = ImageRoot(f"{watched.host}/tasks/one:1")

    async def main() -> None:
        backend = DockerSandbox()
        await backend.probe()
        assert not await backend.offers(root)
        with pytest.raises(SandboxUnavailable):
            await run_once(backend, SandboxSpec(root=root), Command(("true",)))
        with pytest.raises(SandboxUnavailable, match="does not offer it"):
            await select_sandbox("docker", ISOLATED, (root,))
        assert watched.requests == []
        with pytest.raises(SandboxUnavailable, match="answered with an error"):
            await backend.fetch(root, lambda _: None)
        assert watched.requests

    anyio.run(main)


@pytest.mark.parametrize(
    ("require", "runtime", "words"),
    [(ISOLATED | {Guarantee.KERNEL}, None, "kernel"), (ISOLATED, "no-such-runtime", "runtime")],
    ids=["guarantee", "runtime"],
)
def test_nothing_is_pulled_that_could_not_be_run(
    sandbox: Imaged, watched: Stub, require: frozenset[Guarantee], runtime: str | None, words: str
) -> None:
    root = ImageRoot(f"{watched.host}/tasks/one:1")
    with pytest.raises(SandboxUnavailable, match=words):
        anyio.run(select_sandbox, "docker", require, (root,), runtime, lambda _: None)
    assert watched.requests == []


def test_a_pull_can_be_given_up(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_docker_pull, "_QUIET_SECONDS", 0.5)
    monkeypatch.setattr(_docker_pull, "_TELL_SECONDS", 0.1)
    lines: list[str] = []
    with stub_registry(Stub(200, delay=60)) as hung:
        root = ImageRoot(f"{hung.host}/tasks/one:1")

        async def main() -> None:
            backend = DockerSandbox()
            await backend.probe()
            with anyio.move_on_after(2):
                await backend.fetch(root, lines.append)
            monkeypatch.setattr(_docker_pull, "PULL_SECONDS", 1.0)
            with pytest.raises(SandboxUnavailable, match="not done after 1 s"):
                await backend.fetch(root, lines.append)

        began = time.monotonic()
        anyio.run(main)
        assert time.monotonic() - began < 50
        assert processes_with(root.reference) == []
    assert any("waiting for the registry" in line for line in lines), lines
