"""What cannot be done is refused with words that help; a daemon that is not there, or hangs, is never a hang."""

from __future__ import annotations

import io
import os
import socket
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.docker.engine import ROOT, Imaged, docker

from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker import client as _docker_client
from securebench.sandboxes._docker import probe as _docker_probe
from securebench.sandboxes._docker.client import find_client
from securebench.sandboxes._docker.image import resolve
from securebench.sandboxes.base import (
    Bind,
    Command,
    DirectoryRoot,
    Guarantee,
    HostRoot,
    ImageRoot,
    Limits,
    Root,
    SandboxSpec,
    Scratch,
    run_once,
)
from securebench.sandboxes.docker import DockerSandbox

EMPTY = f"securebench-empty:{os.getpid()}"


def _open(sandbox: Imaged, spec: SandboxSpec, command: Command | None = None) -> None:
    anyio.run(run_once, sandbox.real, spec, command or Command(("true",)))


@pytest.mark.parametrize("root", [HostRoot(), DirectoryRoot(Path("/"))], ids=["host", "directory"])
def test_root_that_is_no_image_is_refused(sandbox: Imaged, root: Root) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        _open(sandbox, SandboxSpec(root=root))
    assert "environment.image" in refused.value.remedy


def test_missing_image_says_how_to_get_it_and_pulls_nothing(sandbox: Imaged) -> None:
    began = time.monotonic()
    with pytest.raises(SandboxUnavailable, match="not on this host") as refused:
        _open(sandbox, SandboxSpec(root=ImageRoot("no-such-image:1")))
    assert "docker pull" in refused.value.remedy
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("reference", ["--help", "-v/:/host", "a b", "", "x\ny", "a" * 600])
def test_impossible_image_name_is_refused(sandbox: Imaged, reference: str) -> None:
    with pytest.raises(ConfigError):
        _open(sandbox, SandboxSpec(root=ImageRoot(reference)))


def test_guarantee_that_cannot_be_given_is_refused(sandbox: Imaged) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        _open(sandbox, SandboxSpec(root=ROOT, require=frozenset({Guarantee.KERNEL})))
    assert "runsc" in refused.value.remedy


@pytest.mark.parametrize("number", [2, 3])
def test_channel_that_is_no_standard_stream_is_refused(sandbox: Imaged, number: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConfigError, match=f"channel {number}.*bubblewrap"):
        _open(sandbox, SandboxSpec(root=ROOT), Command(("true",), channels={0: theirs, number: theirs}))


def test_socket_cannot_be_mounted(sandbox: Imaged, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(ConfigError, match="neither a file nor a directory"):
            _open(sandbox, SandboxSpec(root=ROOT, mounts=(Bind(tmp_path / "s", "/run/docker.sock"),)))


def test_capability_that_undoes_the_walls_is_refused(sandbox: Imaged) -> None:
    with pytest.raises(SandboxUnavailable):
        _open(sandbox, SandboxSpec(root=ROOT, capabilities=frozenset({"SYS_ADMIN"})))


@pytest.mark.parametrize("cwd", ["/proc/self/fd/7", "/sys", "/dev"])
def test_working_directory_in_proc_is_refused(sandbox: Imaged, cwd: str) -> None:
    with pytest.raises(ConfigError):
        _open(sandbox, SandboxSpec(root=ROOT, cwd=cwd))


def test_unknown_runtime_is_not_usable_and_says_so(sandbox: Imaged) -> None:
    capabilities = anyio.run(DockerSandbox(runtime="no-such-runtime").probe)
    assert not capabilities.usable
    assert "runtime" in capabilities.remedy


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(ConfigError):
        find_client("lxc")


def test_no_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    capabilities = anyio.run(DockerSandbox().probe)
    assert not capabilities.usable
    assert "Install" in capabilities.remedy
    with pytest.raises(SandboxUnavailable, match="not installed"):
        anyio.run(run_once, DockerSandbox(), SandboxSpec(root=ROOT), Command(("true",)))


def test_no_daemon(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    capabilities = anyio.run(DockerSandbox("docker").probe)
    assert not capabilities.usable
    assert "Start it" in capabilities.remedy


@pytest.fixture
def hung_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Accepts connections and never answers."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "hung.sock"))
        server.listen(50)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/hung.sock")
        yield


@pytest.mark.usefixtures("sandbox", "hung_daemon")
def test_hung_daemon_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_docker_probe, "_DAEMON_SECONDS", 1.0)
    began = time.monotonic()
    capabilities = anyio.run(DockerSandbox("docker").probe)
    assert not capabilities.usable
    assert "did not answer" in capabilities.findings[0].detail
    with pytest.raises(SandboxError, match="did not answer within"):
        anyio.run(lambda: find_client("docker").ask("asking", ["ps"], timeout=0.5))
    assert time.monotonic() - began < 15


def test_daemon_that_hangs_during_a_session_is_an_error_in_time(
    sandbox: Imaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is replaced by one that never returns, once the session is open."""

    async def main() -> None:
        async with sandbox.open(SandboxSpec(limits=Limits(wall_seconds=5))) as session:
            original = _docker_client.run_tool

            async def hang(argv: list[str], timeout: float, **how: object) -> object:
                words = ["/bin/sleep", "60"] if "create" in argv else argv
                return await original(words, min(timeout, 5.0), **how)  # type: ignore[arg-type]

            monkeypatch.setattr(_docker_client, "run_tool", hang)
            await session.run(Command(("true",)))

    began = time.monotonic()
    with pytest.raises(SandboxError, match="did not answer"):
        anyio.run(main)
    assert time.monotonic() - began < 50


def test_image_without_a_shell_cannot_hold_scratch_and_says_so(sandbox: Imaged, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("only"), io.BytesIO())
    assert docker("import", "-", EMPTY, stdin=stream.getvalue()).returncode == 0
    try:
        with pytest.raises((SandboxError, SandboxUnavailable), match="sh"):
            _open(sandbox, SandboxSpec(root=ImageRoot(EMPTY), mounts=(Scratch("/work"),)))
        image = anyio.run(resolve, find_client(), EMPTY)
        assert image.id.startswith("sha256:")
    finally:
        docker("image", "rm", EMPTY)
