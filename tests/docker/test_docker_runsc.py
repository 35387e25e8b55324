"""Containers with a kernel of their own: the same checks as for others where it matters, and that the kernel differs."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import Box, processes_with, text
from tests.docker.engine import ROOT, Imaged, existing_volumes, own_containers, said, volumes_of

from securebench.sandboxes.base import (
    ISOLATED,
    MIB,
    Command,
    Guarantee,
    Limits,
    Network,
    Outcome,
    SandboxSpec,
    Scratch,
    Session,
)
from securebench.sandboxes.canary import run_canary
from securebench.sandboxes.docker import DockerSandbox

OWN_KERNEL = ISOLATED | {Guarantee.KERNEL}


@pytest.fixture(scope="module")
def gvisor(sandbox: Imaged) -> Imaged:
    if "runsc" not in json.loads(said("info", "--format={{json .Runtimes}}")):
        reason = "the daemon does not know the runtime runsc: stop it and run scripts/ci-docker"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") and shutil.which("runsc") else pytest.skip)(reason)
    made = Imaged(DockerSandbox(runtime="runsc"))
    capabilities = anyio.run(made.probe)
    assert capabilities.usable, capabilities.remedy
    return made


@pytest.fixture
def box(gvisor: Imaged) -> Box:
    return Box(gvisor)


def test_the_probe_sees_a_kernel_of_its_own(gvisor: Imaged) -> None:
    assert anyio.run(gvisor.probe).guarantees == OWN_KERNEL | {Guarantee.MEM_HARD}


def test_the_kernel_is_not_the_hosts(box: Box, sandbox: Imaged) -> None:
    release = "read -r _ _ release _ </proc/version; echo $release"
    assert text(Box(sandbox).sh(release)) == platform.release()
    result = box.sh(release, require=OWN_KERNEL)
    assert text(result) not in ("", platform.release())
    assert result.fingerprint["runtime"] == "runsc"
    assert Guarantee.KERNEL in result.guarantees
    assert "gVisor" in text(box.sh("dmesg"))


@pytest.mark.parametrize("network", list(Network))
def test_the_canary_finds_nothing_wrong(gvisor: Imaged, network: Network) -> None:
    spec = SandboxSpec(root=ROOT, mounts=(Scratch("/work"),), cwd="/work", network=network, require=OWN_KERNEL)
    assert anyio.run(run_canary, gvisor, spec) == []


def test_scratch_is_seeded_shared_and_captured(box: Box, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("seed\n")
    spec = SandboxSpec(mounts=(Scratch("/work", MIB, tmp_path),), cwd="/work", limits=Limits(wall_seconds=20))

    async def body(session: Session) -> str:
        first = await session.run(Command(("/bin/sh", "-c", "cat given; echo left > made; echo kept > /tmp/between")))
        assert text(first) == "seed"
        second = await session.run(
            Command(("/bin/sh", "-c", "cat made /tmp/between; dd if=/dev/zero of=big bs=1M count=4"))
        )
        assert second.stdout.data == b"left\nkept\n"
        assert b"No space left" in second.stderr.data
        await session.stop()
        return Path(f"/proc/self/fd/{session.scratch('/work')}/made").read_text()

    assert box.session(spec, body) == "left\n"


@pytest.mark.parametrize("code", [0, 3, 127])
def test_exit_codes(box: Box, code: int) -> None:
    result = box.sh(f"echo out; echo err >&2; exit {code}")
    assert (result.outcome, result.exit_code) == (Outcome.EXITED, code)
    assert (result.stdout.data, result.stderr.data) == (b"out\n", b"err\n")


def test_a_signal_is_told(box: Box) -> None:
    result = box.sh("kill -9 $$")
    assert (result.outcome, result.signal) == (Outcome.SIGNALLED, 9)


def test_timeout_ends_it(box: Box) -> None:
    began = time.monotonic()
    result = box.sh("(setsid sleep 60 &); sleep 60", limits=Limits(wall_seconds=1))
    assert result.timed_out
    assert time.monotonic() - began < 15


EAT = "data = bytearray({size}); data[::4096] = b'x' * len(data[::4096]); print('had it')"


def test_memory_limit_bites(box: Box) -> None:
    program = EAT.format(size=256 * MIB)
    assert text(box.py(program, limits=Limits(wall_seconds=20, memory=768 * MIB))) == "had it"
    result = box.py(program, limits=Limits(wall_seconds=20, memory=128 * MIB))
    assert result.oom, result


CALL = """
import socket, sys
for family, kind, address in {targets!r}:
    try:
        with socket.socket(getattr(socket, family), getattr(socket, kind)) as call:
            call.settimeout(2)
            call.connect(tuple(address) if isinstance(address, list) else address)
            print("reached", address)
    except OSError as error:
        print("refused", address)
print(sorted(name for _, name in socket.if_nameindex()))
"""


@pytest.fixture
def listening() -> Iterator[list[tuple[str, str, object]]]:
    """Servers on this host: loopback, another address of it if there is one, and an abstract socket."""
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("0.0.0.0", 0))
        tcp.listen()
        name = f"\0securebench-{time.time_ns()}"
        abstract.bind(name)
        abstract.listen()
        port = tcp.getsockname()[1]
        targets: list[tuple[str, str, object]] = [
            ("AF_INET", "SOCK_STREAM", ["127.0.0.1", port]),
            ("AF_UNIX", "SOCK_STREAM", name),
        ]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
            route.connect(("192.0.2.1", 9))  # sends nothing; tells our address on the way there
            targets.append(("AF_INET", "SOCK_STREAM", [route.getsockname()[0], port]))
        yield targets


@pytest.mark.parametrize("network", list(Network))
def test_no_network(box: Box, listening: list[tuple[str, str, object]], network: Network) -> None:
    for family, kind, address in listening:  # the control
        with socket.socket(getattr(socket, family), getattr(socket, kind)) as call:
            call.connect(tuple(address) if isinstance(address, list) else address)
    said_inside = text(box.py(CALL.format(targets=listening), network=network))
    assert "reached" not in said_inside
    assert said_inside.count("refused") == len(listening)
    assert said_inside.splitlines()[-1] in ("[]", "['lo']")


@pytest.mark.parametrize(("seconds", "outcome"), [(3, Outcome.EXITED), (60, Outcome.TIMEOUT)])
def test_nothing_remains(box: Box, seconds: int, outcome: Outcome) -> None:
    """Neither containers nor volumes nor any process of the runtime, which has several per container."""

    async def body(session: Session) -> tuple[list[str], list[str]]:
        async def run() -> None:
            command = Command(("/bin/sh", "-c", f"(setsid sleep {seconds} &); sleep {seconds}"), wall_seconds=4)
            assert (await session.run(command)).outcome is outcome

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.sleep(2)
            seen = said("inspect", "--format={{.Id}}", *own_containers()).split()
            assert len(seen) == 2
            assert all(processes_with(identity) for identity in seen), "the control"
        [holder] = own_containers()
        return seen, volumes_of(holder)

    spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=20))
    identities, volumes = box.session(spec, body)
    assert own_containers() == []
    assert not set(volumes) & existing_volumes()
    until = time.monotonic() + 10
    while time.monotonic() < until and any(processes_with(identity) for identity in identities):
        time.sleep(0.1)  # the daemon's shim takes a moment
    assert [processes_with(identity) for identity in identities] == [[], []]
