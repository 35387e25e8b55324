"""Listeners in containers: what is special to how they come out of the holder."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.conformance.sandbox.box import Box, outside, text
from tests.conformance.sandbox.test_as_ordinary_user import UID, _copy, _interpreter
from tests.conformance.sandbox.test_listeners import ASK, PORT, SPEC, _connect, _python, _says, _served
from tests.docker.engine import IMAGE, Imaged, docker, own_containers, said

from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker import hand_over as _hand_over
from securebench.sandboxes._docker.args import Program
from securebench.sandboxes._docker.hand_over import Door
from securebench.sandboxes.base import Command, ImageRoot, SandboxSpec, Scratch, Session

KINDS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["bare", "scratch"])


def _left() -> dict[str, object]:
    return {
        "containers": own_containers(),
        "directories": list(Path(tempfile.gettempdir()).glob(f"securebench-{os.getpid()}-*")),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


@KINDS
def test_the_holder_is_the_only_container_besides_the_command(sandbox: Imaged, mounts: tuple[Scratch, ...]) -> None:
    async def body(session: Session) -> list[str]:
        await session.run(Command(("true",)))
        return own_containers()

    (holder,) = Box(sandbox).session(replace(SPEC, mounts=mounts), body)
    assert holder.endswith("-holder")
    assert own_containers() == []


@KINDS
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.25, 0.35, 0.5])
def test_cancelled_opening_leaves_nothing(sandbox: Imaged, seconds: float, mounts: tuple[Scratch, ...]) -> None:
    _says(Box(sandbox), ASK)
    before = _left()

    async def main() -> None:
        with anyio.move_on_after(seconds):
            async with sandbox.open(replace(SPEC, mounts=mounts)) as session:
                await session.run(Command(("sleep", "60")))

    anyio.run(main)
    assert _left() == before


def test_command_has_nothing_of_the_holder_but_its_network(box: Box) -> None:
    look = "import os; print(os.path.lexists('/securebench-listening'), 'securebench' in open('/proc/mounts').read())"
    assert _says(box, look) == "False False"
    assert _says(box, "import socket; print(socket.gethostname())") == "sandbox"
    assert _says(box, "print(open('/etc/resolv.conf').read().split())") == "['nameserver', '0.0.0.0']"


def test_files_shared_with_the_holder_are_read_only_even_for_root(box: Box) -> None:
    write = (
        "import os, sys\nfor name in ('hosts', 'resolv.conf', 'hostname'):\n"
        " try: open(f'/etc/{name}', 'a'); print('wrote', name)\n except OSError: print('refused')"
    )
    assert _says(box, write, replace(SPEC, user=0)).split() == ["refused"] * 3


@pytest.mark.parametrize("same", [True, False], ids=["same port", "another port"])
def test_host_on_the_engines_bridge_is_out_of_reach(box: Box, same: bool) -> None:
    """A plain container reaches the host by the bridge; where there is none here, there is no such way at all."""
    gateway = said("network", "inspect", "bridge", "--format={{range .IPAM.Config}}{{.Gateway}}{{end}}")
    address = gateway or "172.17.0.1"
    with socket.create_server(("0.0.0.0", PORT if same else 0)) as server:
        assert outside(_connect(server.getsockname()[1])) == "reached"
        assert _says(box, _connect(server.getsockname()[1], address)).startswith("refused")


def test_kernel_of_its_own_is_refused_with_the_remedy(gvisor: Imaged) -> None:
    with pytest.raises(SandboxUnavailable, match="kernel of its own") as refused:
        _says(Box(gvisor), ASK)
    assert "bubblewrap" in refused.value.remedy
    assert "runc" in refused.value.remedy


@contextmanager
def _image(*changes: str) -> Iterator[ImageRoot]:
    """An image without any program."""
    made = f"securebench-listeners:{time.time_ns()}"  # a backend looks a name up once
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("only"), io.BytesIO())
    words = [f"--change={change}" for change in changes]
    assert docker("import", *words, "-", made, stdin=stream.getvalue()).returncode == 0
    try:
        yield ImageRoot(made)
    finally:
        docker("image", "rm", made)


async def _ready(session: Session) -> tuple[str, int]:
    address: tuple[str, int] = session.listener(PORT).getsockname()
    return address


def test_image_needs_no_program_for_it(sandbox: Imaged) -> None:
    with _image() as root:
        for mounts in ((), (Scratch("/work"),)):
            spec = replace(SPEC, root=root, mounts=mounts)
            assert Box(sandbox).session(spec, _ready) == ("127.0.0.1", PORT)


def test_environment_of_the_image_changes_nothing(sandbox: Imaged) -> None:
    hostile = {"PYTHONHOME": "/", "PYTHONPATH": "/", "PYTHONSTARTUP": "/only", "LD_PRELOAD": "/only", "LANG": "x"}
    hostile |= {"LD_LIBRARY_PATH": "/", "SECUREBENCH_TOKEN": "mine", "PYTHONINSPECT": "1", "PYTHONVERBOSE": "1"}
    changes = [f"ENV {name}={value}" for name, value in hostile.items()]
    with _image(*changes) as root:
        assert Box(sandbox).session(replace(SPEC, root=root), _ready) == ("127.0.0.1", PORT)


@contextmanager
def _preloading(library: str) -> Iterator[ImageRoot]:
    """The test image with a library of its own for every process that starts in it."""
    name = f"securebench-preloading-{time.time_ns()}"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("ld.so.preload")
        entry.size = len(library)
        archive.addfile(entry, io.BytesIO(library.encode()))
    said("create", f"--name={name}", IMAGE, "true")
    try:
        assert docker("cp", "-", f"{name}:/etc", stdin=stream.getvalue()).returncode == 0
        said("commit", name, f"{name}:1")
        yield ImageRoot(f"{name}:1")
    finally:
        docker("rm", name)
        docker("image", "rm", f"{name}:1")


@pytest.mark.skipif(os.getuid() != 0, reason="only root sees what another user's process has loaded")
@pytest.mark.parametrize("covered", [True, False], ids=["covered", "control"])
def test_image_takes_no_library_into_our_process(
    sandbox: Imaged, covered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Door.program

    async def program(self: Door, ports: tuple[int, ...]) -> Program:
        whole = await made(self, ports)
        return whole if covered else replace(whole, binds=tuple(b for b in whole.binds if "preload" not in b.target))

    async def loaded(session: Session) -> str:
        (holder,) = own_containers()
        pids = [line for line in said("top", holder, "-o", "pid,args").splitlines() if "listening.py" in line]
        return Path(f"/proc/{pids[-1].split()[0]}/maps").read_text()

    monkeypatch.setattr(Door, "program", program)
    library = said("run", "--rm", IMAGE, "/bin/sh", "-c", "ls /lib/*/libpthread.so.0")
    with _preloading(library) as root:
        maps = Box(sandbox).session(replace(SPEC, root=root), loaded)
    assert "/securebench-listening/python" in maps
    assert ("libpthread" in maps) is not covered


def test_engine_whose_containers_cannot_reach_us_says_so(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a daemon in a virtual machine, where a socket's file is there but nobody listens."""
    made = Door.program

    async def elsewhere(self: Door, ports: tuple[int, ...]) -> Program:
        program = await made(self, ports)
        return replace(program, argv=tuple(word.replace("/socket", "/listening.py") for word in program.argv))

    monkeypatch.setattr(Door, "program", elsewhere)
    with pytest.raises(SandboxUnavailable, match="cannot reach a socket of this host") as refused:
        Box(sandbox).session(SPEC, _ready)
    assert "local Docker" in refused.value.remedy
    assert own_containers() == []


def test_engine_in_which_our_python_does_not_run_says_so(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Door.program

    async def incomplete(self: Door, ports: tuple[int, ...]) -> Program:
        program = await made(self, ports)
        return replace(program, binds=tuple(bind for bind in program.binds if "/libraries/" not in bind.target))

    monkeypatch.setattr(Door, "program", incomplete)
    with _image() as root, pytest.raises(SandboxUnavailable, match="our Python does not run"):
        Box(sandbox).session(replace(SPEC, root=root), _ready)
    assert own_containers() == []


def test_holder_that_says_nothing_is_an_error_in_time(sandbox: Imaged, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(self: Door, ports: tuple[int, ...]) -> Program:
        return Program(("/bin/sh", "-c", "read -r _"), {}, ())

    monkeypatch.setattr(Door, "program", silent)
    monkeypatch.setattr(_hand_over, "_SECONDS", 2.5)
    with pytest.raises(SandboxError, match="no listeners"):
        Box(sandbox).session(SPEC, _ready)
    assert own_containers() == []


def test_holder_ended_from_outside_is_an_error(sandbox: Imaged) -> None:
    async def body(session: Session) -> None:
        assert text(await session.run(_python(ASK))) == "host"
        (holder,) = own_containers()
        docker("kill", holder)
        await session.run(_python(ASK))

    with pytest.raises((SandboxError, ExceptionGroup)) as raised:
        _served(Box(sandbox), SPEC, body)
    assert raised.group_contains(SandboxError) if isinstance(raised.value, ExceptionGroup) else True
    assert own_containers() == []


def test_listeners_without_loopback_are_refused_before_anything_is_made() -> None:
    with pytest.raises(ConfigError):
        SandboxSpec(root=ImageRoot(IMAGE), listeners=(PORT,))


ORDINARY = """
import os, socket, sys, anyio
from securebench.sandboxes.base import Command, ImageRoot, Limits, Network, SandboxSpec
from securebench.sandboxes.docker import DockerSandbox

async def main():
    assert os.getuid() == int(sys.argv[1])
    spec = SandboxSpec(root=ImageRoot(sys.argv[2]), network=Network.LOOPBACK, listeners=(3128,),
                       limits=Limits(wall_seconds=30))
    ask = "import socket; print(socket.create_connection(('127.0.0.1', 3128), 20).recv(9).decode())"
    async with DockerSandbox("docker").open(spec) as session, anyio.create_task_group() as tasks:
        async def answer():
            await anyio.wait_readable(session.listener(3128))
            with session.listener(3128).accept()[0] as connection:
                connection.send(b"ordinary")
        tasks.start_soon(answer)
        result = await session.run(Command(("/usr/bin/python3", "-c", ask)))
        print(result.stdout.data.decode().strip(), result.stderr.data.decode())

anyio.run(main)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="the rest of these tests already run as an ordinary user")
@pytest.mark.usefixtures("sandbox")
def test_member_of_the_daemons_group_needs_no_other_privilege() -> None:
    group = os.stat("/var/run/docker.sock").st_gid
    directory = Path(tempfile.mkdtemp(prefix="securebench-ordinary-"))
    directory.chmod(0o755)
    try:
        _copy(directory)
        temporary = directory / "tmp"
        temporary.mkdir()
        temporary.chmod(0o777)
        user = ["setpriv", f"--reuid={UID}", f"--regid={UID}", f"--groups={group}", "--no-new-privs"]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(directory / "lib"), "TMPDIR": str(temporary)}
        env |= {"HOME": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*user, _interpreter(), "-c", ORDINARY, str(UID), IMAGE], env=env, capture_output=True, text=True,
            timeout=200, check=False, cwd="/",
        )  # fmt: skip
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    assert done.stdout.split() == ["ordinary"], done.stdout + done.stderr
