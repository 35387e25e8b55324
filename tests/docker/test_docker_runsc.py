"""Containers with a kernel of their own: the same checks as for others where it matters, and that the kernel differs."""

from __future__ import annotations

import platform
import time

import anyio
import pytest
from tests.conformance.sandbox.box import Box, processes_with, text
from tests.docker.engine import ROOT, Imaged, existing_volumes, own_containers, said, volumes_of

from securebench.sandboxes.base import (
    ISOLATED,
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

OWN_KERNEL = ISOLATED | {Guarantee.KERNEL}


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


@pytest.mark.parametrize("network", [Network.NONE, Network.LOOPBACK])
def test_the_canary_finds_nothing_wrong(gvisor: Imaged, network: Network) -> None:
    spec = SandboxSpec(root=ROOT, mounts=(Scratch("/work"),), cwd="/work", network=network, require=OWN_KERNEL)
    assert anyio.run(run_canary, gvisor, spec) == []


@pytest.mark.parametrize(("seconds", "wall", "outcome"), [(8, 60, Outcome.EXITED), (120, 8, Outcome.TIMEOUT)])
def test_nothing_remains(box: Box, seconds: int, wall: int, outcome: Outcome) -> None:
    """Neither containers nor volumes nor any process of the runtime, which has several per container."""

    async def body(session: Session) -> tuple[list[str], list[str]]:
        async def run() -> None:
            command = Command(("/bin/sh", "-c", f"(setsid sleep {seconds} &); sleep {seconds}"), wall_seconds=wall)
            assert (await session.run(command)).outcome is outcome

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            seen: list[str] = []
            with anyio.fail_after(60):  # the control: both are there, and the runtime's processes for them
                while len(seen) < 2 or not all(processes_with(identity) for identity in seen):
                    await anyio.sleep(0.1)
                    seen = said("inspect", "--format={{.Id}}", *own_containers()).split()
        [holder] = own_containers()
        return seen, volumes_of(holder)

    spec = SandboxSpec(mounts=(Scratch("/work"),), limits=Limits(wall_seconds=120))
    identities, volumes = box.session(spec, body)
    assert own_containers() == []
    assert not set(volumes) & existing_volumes()
    until = time.monotonic() + 90
    while time.monotonic() < until and any(processes_with(identity) for identity in identities):
        time.sleep(0.1)  # the daemon's shim takes a moment
    assert [processes_with(identity) for identity in identities] == [[], []]
