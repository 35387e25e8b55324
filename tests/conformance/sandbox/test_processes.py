"""Who a command is, whom it sees, and what it inherits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import anyio
import pytest
from tests.conformance.sandbox.box import PYTHON, Box, kernel_uid, outside, processes_with, text

from securebench.sandboxes.base import Command, Limits, SandboxSpec, Scratch, Session, run_once

STATUS = "import re; print(dict(re.findall(r'(\\w+):\\s+(\\S+)', open('/proc/self/status').read()))[{!r}])"
SPECS = pytest.mark.parametrize("mounts", [(), (Scratch("/work"),)], ids=["fresh", "session"])


def _status(box: Box, field: str, mounts: tuple[Scratch, ...]) -> str:
    return text(box.py(STATUS.format(field), mounts=mounts))


@SPECS
def test_it_is_not_root_inside(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert text(box.sh("id -u; id -g", mounts=mounts)).split() == ["65534", "65534"]


def test_it_is_the_user_the_spec_names(box: Box) -> None:
    assert text(box.sh("id -u; id -un", user=1000)).split() == ["1000", "sandbox"]


@SPECS
@pytest.mark.parametrize("name", ["CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"])
def test_it_has_no_capabilities(box: Box, name: str, mounts: tuple[Scratch, ...]) -> None:
    assert int(_status(box, name, mounts), 16) == 0


@SPECS
def test_it_cannot_gain_privileges(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert _status(box, "NoNewPrivs", mounts) == "1"
    assert outside(STATUS.format("NoNewPrivs")) == "0"


@SPECS
def test_it_is_filtered(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert _status(box, "Seccomp", mounts) == "2"
    assert outside(STATUS.format("Seccomp")) == "0"


@SPECS
def test_it_ignores_no_signal(box: Box, mounts: tuple[Scratch, ...]) -> None:
    # 32 and 33 are the C library's own: posix_spawn, which make uses, leaves them ignored, and no program can change that.
    internal = 1 << 31 | 1 << 32
    seen = text(box.sh("grep -E 'SigIgn|SigBlk' /proc/self/status", mounts=mounts)).split()
    assert seen[0::2] == ["SigBlk:", "SigIgn:"]
    assert [int(mask, 16) & ~internal for mask in seen[1::2]] == [0, 0]


@SPECS
def test_the_kernel_does_not_know_it_as_us(box: Box, mounts: tuple[Scratch, ...]) -> None:
    """Kernel uid 0 never; as root another uid per sandbox, as an ordinary user our own."""
    seen: list[int] = []

    async def look(marker: str) -> None:
        while not (found := processes_with(marker)):
            await anyio.sleep(0.01)
        seen.extend({kernel_uid(pid) for pid in found})

    async def one(marker: str) -> None:
        spec = SandboxSpec(mounts=mounts, limits=Limits(wall_seconds=60))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_once, box.sandbox, spec, Command(("/bin/sleep", marker)))
            await look(marker)
            tasks.cancel_scope.cancel()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, f"31.41{os.getpid()}")
            tasks.start_soon(one, f"27.18{os.getpid()}")

    anyio.run(main)
    assert 0 not in seen
    assert len(set(seen)) == (2 if os.getuid() == 0 else 1)


@SPECS
def test_it_sees_only_its_own_processes(box: Box, mounts: tuple[Scratch, ...]) -> None:
    count = "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))"
    assert int(outside(count)) > 5
    assert int(text(box.py(count, mounts=mounts))) <= 3


@SPECS
def test_the_first_process_shows_nothing_of_the_host(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh("cat /proc/1/environ /proc/1/cmdline 2>/dev/null | tr '\\0' ' '", mounts=mounts)
    assert os.getcwd().encode() not in result.stdout.data
    assert b"--bind" not in result.stdout.data


@SPECS
def test_the_first_process_cannot_be_taken_over(box: Box, mounts: tuple[Scratch, ...]) -> None:
    attack = "open('/proc/1/mem', 'r+b'); print('open')"
    assert not box.py(attack, mounts=mounts).ok


@SPECS
def test_signals_do_not_leave(box: Box, mounts: tuple[Scratch, ...]) -> None:
    canary = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        box.sh(f"kill -9 {canary.pid}; kill -9 -1; true", mounts=mounts)
        assert canary.poll() is None
    finally:
        canary.send_signal(signal.SIGKILL)
        assert canary.wait() == -signal.SIGKILL


@SPECS
def test_no_descriptor_is_inherited(box: Box, mounts: tuple[Scratch, ...]) -> None:
    leaked = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    try:
        listing = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
        assert text(box.py(listing, mounts=mounts)) == "[0, 1, 2, 3]"  # 3 is the listing itself
    finally:
        os.close(leaked)


@SPECS
def test_environment_is_exactly_what_was_asked_for(
    box: Box, mounts: tuple[Scratch, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECUREBENCH_TEST_SECRET", "leaked")
    result = box.run(
        "/usr/bin/env",
        "-0",
        mounts=mounts,
        env={"A": "1 2\n3", "B": "spec"},
        command={"env": {"B": "command", "C": "ü"}},
    )
    assert result.ok
    seen = dict(item.split("=", 1) for item in result.stdout.data.decode().split("\0") if item)
    defaults = {"PATH", "HOME", "LANG", "PWD"}
    assert {name: value for name, value in seen.items() if name not in defaults} == {
        "A": "1 2\n3",
        "B": "command",
        "C": "ü",
    }
    assert set(seen) - {"A", "B", "C"} <= defaults


@SPECS
def test_working_directory_is_as_asked(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert text(box.sh("pwd", cwd="/usr", mounts=mounts)) == "/usr"
    assert text(box.sh("pwd", cwd="/usr", mounts=mounts, command={"cwd": "/usr/bin"})) == "/usr/bin"


@SPECS
def test_host_name_is_fixed(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert text(box.sh("uname -n", mounts=mounts)) == "sandbox"


@SPECS
def test_it_has_a_session_of_its_own_and_no_terminal(box: Box, mounts: tuple[Scratch, ...]) -> None:
    look = "import os\ntry: os.open('/dev/tty', os.O_RDWR); print('terminal')\nexcept OSError: print('none', os.getsid(0) in (1, os.getpid()))"
    assert text(box.py(look, mounts=mounts)) == "none True"


@SPECS
def test_missing_program_is_127_with_a_reason(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.run("no-such-program", mounts=mounts)
    assert (result.outcome, result.exit_code) == ("exited", 127)
    assert b"no-such-program" in result.stderr.data


@SPECS
def test_program_that_may_not_be_executed_is_126(box: Box, mounts: tuple[Scratch, ...]) -> None:
    assert box.run("/etc/passwd", mounts=mounts).exit_code == 126


@SPECS
def test_missing_working_directory_is_the_commands_failure(box: Box, mounts: tuple[Scratch, ...]) -> None:
    result = box.run("/bin/true", mounts=mounts, command={"cwd": "/no/such/place"})
    assert result.exit_code == 127
    assert result.stderr.data


@SPECS
def test_words_of_bubblewrap_from_the_command_are_only_its_output(box: Box, mounts: tuple[Scratch, ...]) -> None:
    """A command cannot pass itself off as a failure of the sandbox."""
    result = box.sh("echo 'bwrap: Creating new namespace failed: forged' >&2; exit 1", mounts=mounts)
    assert (result.outcome, result.exit_code) == ("exited", 1)
    assert result.stderr.data.startswith(b"bwrap: Creating")


@SPECS
@pytest.mark.parametrize("code", [0, 1, 2, 42, 125, 126, 127, 128, 255])
def test_exit_code_is_faithful(box: Box, code: int, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh(f"exit {code}", mounts=mounts)
    assert (result.outcome, result.exit_code, result.signal) == ("exited", code, None)


@SPECS
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_signal_is_faithful(box: Box, number: signal.Signals, mounts: tuple[Scratch, ...]) -> None:
    result = box.sh(f"kill -{int(number)} $$", mounts=mounts)
    assert (result.outcome, result.exit_code, result.signal) == ("signalled", None, number)


def test_session_tells_exit_137_from_a_kill(box: Box) -> None:
    async def body(session: Session) -> list[object]:
        first = await session.run(Command(("/bin/sh", "-c", "exit 137")))
        second = await session.run(Command(("/bin/sh", "-c", "kill -9 $$")))
        return [first.exit_code, first.signal, second.exit_code, second.signal]

    spec = SandboxSpec(mounts=(Scratch("/work"),))
    assert box.session(spec, body) == [137, None, None, signal.SIGKILL]


def test_python_works_as_usual(box: Box) -> None:
    program = (
        "import threading, subprocess, socket, multiprocessing.pool as p\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
        "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(4).decode())\n"
        "print(p.ThreadPool(2).map(abs, [-1])[0])"
    )
    assert text(box.run(PYTHON, "-c", program)).split() == ["thread", "child", "pair", "1"]
