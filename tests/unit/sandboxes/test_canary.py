"""The canary sees what must not be there. Every rule has a sighting that breaks it."""

from __future__ import annotations

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap

from securebench.sandboxes.base import ISOLATED, Command, Network, SandboxSpec, Scratch, run_once
from securebench.sandboxes.canary import SCRIPT, host_namespaces, read_sighting, run_canary, violations
from securebench.sandboxes.host import HostSandbox
from securebench.sandboxes.select import make_sandbox

OURS = {name: f"{name}:[1]" for name in ("pid", "net", "ipc", "uts", "mnt")}
CLEAN = """status.Uid 65534
status.CapPrm 0000000000000000
status.CapEff 0000000000000000
status.CapAmb 0000000000000000
status.NoNewPrivs 1
status.Seccomp 2
ns.pid pid:[2]
ns.net net:[2]
ns.mnt mnt:[2]
process sh
interface lo
variable HOME
end ok
"""


def test_a_clean_sandbox_breaks_no_rule() -> None:
    assert list(violations(read_sighting(CLEAN), SandboxSpec(), OURS)) == []


BROKEN = [
    ("status.Uid 65534", "status.Uid 0", "runs as user 0"),
    ("status.CapEff 0000000000000000", "status.CapEff 0000000000000400", "capabilities"),
    ("status.NoNewPrivs 1", "status.NoNewPrivs 0", "new privileges"),
    ("status.Seccomp 2", "status.Seccomp 0", "system call filter"),
    ("ns.pid pid:[2]", "ns.pid pid:[1]", "pid namespace"),
    ("ns.net net:[2]", "ns.net net:[1]", "net namespace"),
    ("ns.mnt mnt:[2]", "ns.mnt mnt:[1]", "mnt namespace"),
    ("ns.mnt mnt:[2]\n", "", "mnt namespace"),
    ("process sh", "process sh\nprocess systemd", "host processes"),
    ("interface lo", "interface lo\ninterface eth0", "eth0"),
    ("interface lo", "interface lo\nroute eth0", "route"),
    ("variable HOME", "variable HOME\nvariable API_KEY", "API_KEY"),
    ("variable HOME", "variable HOME\nfd 7", "descriptors"),
    ("variable HOME", "variable HOME\nwritable /etc", "writable: /etc"),
    ("variable HOME", "variable HOME\nvisible /var/run/docker.sock", "docker.sock"),
    ("end ok\n", "", "did not finish"),
]


@pytest.mark.parametrize("before, after, complaint", BROKEN)
def test_each_missing_wall_is_seen(before: str, after: str, complaint: str) -> None:
    assert before in CLEAN
    found = list(violations(read_sighting(CLEAN.replace(before, after)), SandboxSpec(), OURS))
    assert any(complaint in violation for violation in found), found


# gVisor: no ambient set, nothing about privileges, no filter of the host's and no namespaces.
OWN_KERNEL = """status.Uid 65534
status.CapPrm 0000000000000000
status.CapEff 0000000000000000
status.Seccomp 0
ns.pid
ns.mnt
process sh
interface lo
variable HOME
end ok
"""


def test_a_kernel_of_its_own_need_not_show_the_hosts_walls() -> None:
    seen = read_sighting(OWN_KERNEL)
    assert list(violations(seen, SandboxSpec(), OURS, own_kernel=True)) == []
    assert len(list(violations(seen, SandboxSpec(), OURS))) == 6


@pytest.mark.parametrize(
    "before, after, complaint",
    [
        ("status.Uid 65534", "status.Uid 0", "runs as user 0"),
        ("status.CapEff 0000000000000000\n", "", "capabilities"),
        ("status.CapPrm 0000000000000000", "status.CapPrm 0000000000000400", "capabilities"),
        ("status.Seccomp 0", "status.NoNewPrivs 0", "new privileges"),
        ("ns.pid\n", "ns.pid pid:[1]\n", "pid namespace"),
        ("interface lo", "interface lo\ninterface eth0", "eth0"),
        ("variable HOME", "variable HOME\nwritable /etc", "writable: /etc"),
    ],
)
def test_a_kernel_of_its_own_excuses_nothing_else(before: str, after: str, complaint: str) -> None:
    assert before in OWN_KERNEL
    seen = read_sighting(OWN_KERNEL.replace(before, after))
    assert any(complaint in found for found in violations(seen, SandboxSpec(), OURS, own_kernel=True))


@pytest.mark.parametrize(
    "spec",
    [
        SandboxSpec(),
        SandboxSpec(mounts=(Scratch("/workspace"),), cwd="/workspace"),
        SandboxSpec(network=Network.LOOPBACK, env={"WANTED": "1"}),
    ],
)
def test_bubblewrap_breaks_no_rule(spec: SandboxSpec) -> None:
    need_bubblewrap()
    assert anyio.run(run_canary, make_sandbox("bubblewrap"), spec) == []


def test_positive_control_without_a_sandbox_the_canary_complains() -> None:
    script = SCRIPT.replace("/.securebench-canary", "/no-such-directory/file")  # look, but write nothing
    result = anyio.run(run_once, HostSandbox(), SandboxSpec(require=frozenset()), Command(("/bin/sh", "-c", script)))
    found = list(
        violations(read_sighting(result.stdout.data.decode()), SandboxSpec(require=ISOLATED), host_namespaces())
    )
    for expected in ("pid namespace", "net namespace", "mnt namespace", "system call filter"):
        assert any(expected in complaint for complaint in found), found
