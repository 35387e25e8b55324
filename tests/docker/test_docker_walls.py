"""What a container could be given by its image, its engine or its operator, and is not. With positive controls."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import Box, kernel_uid, processes_with, text
from tests.docker.engine import IMAGE, Imaged, docker, said

from securebench.sandboxes.base import (
    MIB,
    Command,
    Guarantee,
    ImageRoot,
    Limits,
    Network,
    SandboxResult,
    SandboxSpec,
    Scratch,
    run_once,
)
from securebench.sandboxes.docker import DockerSandbox

PLAIN = ("run", "--rm", "--pull=never", "--network=none")


@pytest.fixture(scope="module")
def odd_image(sandbox: Imaged) -> Iterator[str]:
    """An image whose author declared everything an image can declare."""
    name = f"securebench-odd:{os.getpid()}"
    container = said("create", "--pull=never", IMAGE, "true")
    changes = [
        "VOLUME /data", "USER root", "WORKDIR /opt", 'ENTRYPOINT ["/bin/echo", "entry"]', "ENV PATH=/opt/odd:/usr/bin:/bin",
        "ENV ODD=image", 'HEALTHCHECK --interval=1s CMD ["/bin/touch", "/data/health"]',
    ]  # fmt: skip
    said("commit", *(f"--change={change}" for change in changes), container, name)
    docker("rm", container)
    yield name
    docker("image", "rm", "--force", name)


def _run(sandbox: Imaged, image: str, script: str, **spec: object) -> SandboxResult:
    made = SandboxSpec(root=ImageRoot(image), limits=Limits(wall_seconds=120), **spec)  # type: ignore[arg-type]
    return anyio.run(run_once, sandbox, made, Command(("/bin/sh", "-c", script)))


def test_volume_the_image_declares_is_not_writable(sandbox: Imaged, odd_image: str) -> None:
    attack = "touch /data/x && echo wrote || echo refused"
    assert said(*PLAIN, "--entrypoint=/bin/sh", odd_image, "-c", attack) == "wrote"
    assert text(_run(sandbox, odd_image, attack)) == "refused"
    assert text(_run(sandbox, odd_image, attack, user=0)) == "refused"


def test_scratch_may_replace_a_declared_volume(sandbox: Imaged, odd_image: str) -> None:
    assert text(_run(sandbox, odd_image, "touch /data/x && echo wrote", mounts=(Scratch("/data"),))) == "wrote"


def test_user_entry_point_and_directory_of_the_image_are_overruled(sandbox: Imaged, odd_image: str) -> None:
    assert text(_run(sandbox, odd_image, "id -u; pwd")).split() == ["65534", "/"]


def test_environment_is_exactly_what_image_and_spec_say(sandbox: Imaged, odd_image: str) -> None:
    shown = text(_run(sandbox, odd_image, "exec env -u PWD", env={"ODD": "spec", "MULTI": "a\nb", "EMPTY": ""}))
    assert set(shown.splitlines()) == {
        "HOME=/tmp", "LANG=C.UTF-8", "PATH=/opt/odd:/usr/bin:/bin", "ODD=spec", "MULTI=a", "b", "EMPTY=",
    }  # fmt: skip


def test_health_check_of_the_image_does_not_run(sandbox: Imaged, odd_image: str) -> None:
    look = "[ -e /data/health ] && echo checked || echo quiet"
    wait = "n=0; until [ -e /data/health ] || [ $n = 900 ]; do sleep 0.1; n=$((n + 1)); done; "
    began = time.monotonic()
    assert said(*PLAIN, "--entrypoint=/bin/sh", odd_image, "-c", wait + look) == "checked"
    look = f"sleep {max(2.5, time.monotonic() - began)}; {look}"
    assert text(_run(sandbox, odd_image, look, mounts=(Scratch("/data"),))) == "quiet"


def test_environment_of_the_operator_is_nowhere(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = f"operators-{time.time_ns()}"
    monkeypatch.setenv("SECRET_OF_THE_HOST", marker)
    monkeypatch.setenv("HTTP_PROXY", f"http://{marker}")
    attack = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env"
    assert marker in said(*PLAIN, "--env=SECRET_OF_THE_HOST", IMAGE, "/bin/sh", "-c", attack)
    result = _run(sandbox, IMAGE, attack)
    assert result.stdout.total > 100
    assert marker.encode() not in result.stdout.data


def test_proxy_of_the_clients_configuration_does_not_leak(
    sandbox: Imaged, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxies = {"proxies": {"default": {"httpProxy": "http://proxy.invalid:1", "noProxy": "corp.invalid"}}}
    (tmp_path / "config.json").write_text(json.dumps(proxies))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert "proxy.invalid" in said(*PLAIN, IMAGE, "env")
    configured = Imaged(DockerSandbox())
    assert "invalid" not in text(_run(configured, IMAGE, "env"))


def test_daemons_socket_is_out_of_reach(sandbox: Imaged) -> None:
    attack = (
        "import os, socket, glob\n"
        "found = [p for d in ('/run', '/var/run', '/tmp') for p in glob.glob(d + '/**/*.sock', recursive=True)]\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect('/var/run/docker.sock'); print('reached')\n"
        "except OSError as e: print('refused', found)"
    )
    control = said(*PLAIN, "--volume=/var/run/docker.sock:/var/run/docker.sock", IMAGE, "python3", "-c", attack)
    assert control == "reached"
    assert text(Box(sandbox).py(attack)) == "refused []"


def test_resolver_of_the_host_is_not_shown(sandbox: Imaged) -> None:
    assert text(_run(sandbox, IMAGE, "cat /etc/resolv.conf")) == "nameserver 0.0.0.0"


@pytest.mark.parametrize("call", ["io_uring_setup", "netlink"])
def test_call_the_engines_own_filter_lets_through_is_refused(sandbox: Imaged, call: str) -> None:
    programs = {
        "io_uring_setup": "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.syscall(425, 1, 0); print(ctypes.get_errno())",
        "netlink": "import socket\ntry: socket.socket(16, 3); print(0)\nexcept OSError as e: print(e.errno)",
    }
    ours = int(text(Box(sandbox).py(programs[call])))
    assert ours == {"io_uring_setup": 38, "netlink": 97}[call]
    control = int(said(*PLAIN, "--user=65534", IMAGE, "python3", "-c", programs[call]))
    if control == 1:
        pytest.skip("this engine's own filter refuses it too")
    assert control != ours


def test_kernel_knows_it_as_the_user_of_the_spec_and_never_as_root(sandbox: Imaged) -> None:
    marker = f"65.{time.time_ns()}"
    seen: list[int] = []

    async def main() -> None:
        spec = SandboxSpec(limits=Limits(wall_seconds=120), user=1234)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_once, sandbox, spec, Command(("sleep", marker)))
            while not (found := processes_with(f"sleep\0{marker}")):
                await anyio.sleep(0.02)
            seen.extend(kernel_uid(pid) for pid in found)
            tasks.cancel_scope.cancel()

    anyio.run(main)
    assert set(seen) == {1234}


def test_root_inside_without_capabilities_can_do_nothing(sandbox: Imaged) -> None:
    script = (
        "mount -t tmpfs x /tmp; mknod /tmp/n b 8 0; chown 1:1 /tmp; date -s 2000-01-01; grep CapEff /proc/self/status"
    )
    result = _run(sandbox, IMAGE, script, user=0)
    assert result.stdout.data.split()[-1] == b"0000000000000000"
    assert result.stderr.data.count(b"\n") >= 4


def test_capability_the_spec_names_works(sandbox: Imaged) -> None:
    script = "chown 1:1 /tmp && stat -c %u /tmp"
    assert text(_run(sandbox, IMAGE, script, user=0, capabilities=frozenset({"CHOWN"}))) == "1"
    assert not _run(sandbox, IMAGE, script, user=0).ok


def test_image_is_run_by_its_id_and_recorded(sandbox: Imaged) -> None:
    result = _run(sandbox, IMAGE, "true")
    assert result.fingerprint["image"] == said("image", "inspect", "--format={{.Id}}", IMAGE)
    assert result.fingerprint["image_reference"] == IMAGE
    assert {"docker", "runc", "kernel", "seccomp_sha256"} <= set(result.fingerprint)


def test_memory_limit_bites_many_times_in_a_row(sandbox: Imaged) -> None:
    """The engine learns of it from an event; it must not be lost."""
    spec = SandboxSpec(root=ImageRoot(IMAGE), limits=Limits(wall_seconds=120, memory=32 * MIB))
    eat = Command(("python3", "-c", "x = [bytearray(1 << 20) for _ in range(200)]"))
    assert [anyio.run(run_once, sandbox, spec, eat).oom for _ in range(8)] == [True] * 8


def test_fork_bomb_is_bounded_and_the_next_sandbox_unaffected(sandbox: Imaged) -> None:
    spec = SandboxSpec(root=ImageRoot(IMAGE), limits=Limits(wall_seconds=3, pids=32))
    bomb = Command(("/bin/sh", "-c", "f() { f | f & }; f; sleep 30"))
    assert not anyio.run(run_once, sandbox, spec, bomb).ok
    assert text(_run(sandbox, IMAGE, "echo alive")) == "alive"


def test_detach_keys_in_the_input_are_only_input(sandbox: Imaged) -> None:
    data = b"\x10\x11" * 1000 + os.urandom(100_000)
    spec = SandboxSpec(root=ImageRoot(IMAGE), limits=Limits(wall_seconds=120))
    assert anyio.run(run_once, sandbox, spec, Command(("cat",), stdin=data)).stdout.data == data


def test_start_of_the_container_does_not_count_as_time_of_the_command(sandbox: Imaged) -> None:
    spec = SandboxSpec(root=ImageRoot(IMAGE), limits=Limits(wall_seconds=0.25))
    # A busy host may leave even this command no time; no container starts so quickly, once or often.
    assert any(anyio.run(run_once, sandbox, spec, Command(("true",))).ok for _ in range(30))


def test_loopback_is_private(sandbox: Imaged) -> None:
    made = text(_run(sandbox, IMAGE, "cat /proc/net/route /proc/net/dev", network=Network.LOOPBACK))
    assert [line.split(":")[0].strip() for line in made.splitlines() if ":" in line] == ["lo"]


def test_probe_saw_every_guarantee_it_advertises(sandbox: Imaged) -> None:
    capabilities = anyio.run(sandbox.probe)
    assert {Guarantee.FS, Guarantee.PID, Guarantee.NET, Guarantee.MEM_HARD} == capabilities.guarantees
    assert {finding.name for finding in capabilities.findings} >= {"engine", "fs", "pid", "net", "mem_hard"}
    began = time.monotonic()
    assert anyio.run(sandbox.probe) is capabilities
    assert time.monotonic() - began < 10
