"""The kernel's part alone: with the guard's policy off, what it refuses stays refused; without the seal it is done."""

import ctypes
import errno
import os
import platform
import sys

import pytest

from securebench.guard import calls, seccomp

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in calls.MACHINES, reason="the seal knows Linux on two machines"
)


def _landlock() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(444, None, 0, 1)) > 0


needs_landlock = pytest.mark.skipif(not (sys.platform == "linux" and _landlock()), reason="this kernel has no Landlock")

REFUSED = {
    "fork": "os.fork() or os._exit(0)",
    "exec": "os.execv('/bin/echo', ['echo', 'escaped'])",
    "spawn": "subprocess.run(['true'])",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "inet": "socket.socket()",
    "unix": "socket.socket(socket.AF_UNIX)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "setsid": "os.setpgid(0, 0)",
    "mkfifo": "os.mkfifo('f')",
    "memfd": "os.memfd_create('m')",
    "pidfd": "os.pidfd_open(os.getpid())",
    "kill_other": "os.kill(os.getppid(), 0)",
    "kill_group": "os.kill(0, 0)",
    "shared_memory": "libc(SHMGET, 0, 4096, 0o1600)",
    "keyring": "libc(KEYCTL, 0, -3, 0)",
    "limit": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "prctl_dumpable": "libc(PRCTL, 4, 1, 0, 0, 0)",
    "io_uring": "libc(425, 1, 0) == -1 and ctypes.get_errno() == errno.ENOSYS and fail()",
    "clone_process": "libc(CLONE, 17, 0, 0, 0, 0) or os._exit(0)",
    "clone_thread_and_namespace": "libc(CLONE, 0x10010000 | 0x10F00, 0, 0, 0, 0)",
}
FILES = {
    "read": "open(OUT).read()",
    "write": "open(OUT, 'w')",
    "create": "open(OUT + '.new', 'w')",
    "remove": "os.remove(OUT)",
    "list": "os.listdir(os.path.dirname(OUT))",
    "link": "os.link(OUT, 'l')",
    "symlink": "(os.symlink(OUT, 's'), open('s').read())",
    "rename": "os.rename(OUT, 'r')",
    "truncate": "os.truncate(OUT, 0)",
    "attach": "sqlite3.connect('a.db').execute('attach ? as o', (OUT + '.db',)).execute('create table o.t(x)')",
    "vacuum_into": "sqlite3.connect('a.db').execute('vacuum into ?', (OUT + '.db',))",
    "proc_environ": "open('/proc/self/environ').read()",
}


def _program(text: str) -> str:
    numbers = calls.MACHINES[platform.machine()][1]
    return (
        "import ctypes, errno, os, resource, socket, sqlite3, subprocess, sys\nOUT = sys.argv[1]\n"
        f"SHMGET, KEYCTL, CLONE, PRCTL = {[numbers[n] for n in ('shmget', 'keyctl', 'clone', 'prctl')]}\n"
        "_libc = ctypes.CDLL(None, use_errno=True)\ndef fail(): raise PermissionError\n"
        "def libc(*a):\n    r = _libc.syscall(*map(ctypes.c_long, a))\n"
        "    if r == -1 and ctypes.get_errno() == errno.EPERM: raise PermissionError\n    return r\n"
        f"try:\n    {text}\nexcept (OSError, sqlite3.OperationalError, ValueError):\n    print('refused')\n"
        "else:\n    print('esc' + 'aped')\n"
    )


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_filter_refuses(guarded, name):
    outside = str(guarded.base / "report.jsonl")
    program = _program(REFUSED[name])
    run = guarded(program, policy="off", seal=True, require=["seccomp", "no_new_privs"], args=[outside])
    assert run.out == "refused\n", run.err
    if name not in ("keyring", "io_uring", "clone_thread_and_namespace", "shared_memory"):  # where a CI has them not
        assert "escaped" in guarded(program, policy="off", args=[outside]).out


@needs_landlock
@pytest.mark.parametrize("name", sorted(FILES))
def test_landlock_refuses(guarded, name):
    outside = guarded.base / "outside" / "file.txt"
    outside.parent.mkdir()

    def run(**params):
        outside.write_text("old")
        for path in guarded.root.iterdir():
            path.unlink()
        return guarded(_program(FILES[name]), policy="off", args=[str(outside)], **params)

    assert run(seal=True, require=["landlock"]).out == "refused\n"
    assert outside.read_text() == "old"
    assert [path.name for path in outside.parent.iterdir()] == ["file.txt"]
    assert run().out == "escaped\n"


def test_allowed_items_are_let_through(guarded):
    text = (
        "import os, socket, subprocess\nsocket.socket().close()\nprint(subprocess.run(['echo', 'child'], capture_output=True).stdout)\n"
        "os.kill(0, 0)\nprint(open('/etc/hosts').readable())\n"
    )
    allow = ["process", "network", "signals", "files", "listing"]
    run = guarded(text, allow=allow, seal=True, require=["seccomp", "hook"])
    assert run.out == "b'child\\n'\nTrue\n", run.err
    assert "landlock" not in run.installed


def test_limits_are_set_soft_and_hard(guarded):
    text = "import resource\nprint(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_CPU))"
    run = guarded(text, rlimits={"fsize": 5000, "RLIMIT_CPU": [40, 50]}, require=["rlimits"])
    assert run.out == "(5000, 5000) (40, 50)\n"


def test_memory_limit_is_a_memory_error(guarded):
    text = "try:\n    x = bytearray(2 << 30)\nexcept MemoryError:\n    print('limited')\nelse:\n    print('all of it')"
    assert guarded(text, rlimits={"AS": 1 << 29}, seal=True).out == "limited\n"
    assert guarded(text).out == "all of it\n"


def test_everything_is_installed_and_said(guarded):
    run = guarded("", seal=True, rlimits={"CORE": 0}, require=["hook", "imports", "no_new_privs", "rlimits", "seccomp"])
    assert run.code == 0
    assert [part for part in run.installed if part != "landlock"] == [
        "no_new_privs", "rlimits", "seccomp", "imports", "hook",
    ]  # fmt: skip


@pytest.mark.parametrize("machine", sorted(calls.MACHINES))
def test_filter_is_well_formed_on_every_machine(machine):
    for allowed in (frozenset(), frozenset({"process", "network", "signals", "amounts"})):
        program = seccomp.build(machine, allowed, os.getpid())
        steps = [program[i : i + 8] for i in range(0, len(program), 8)]
        assert len(program) % 8 == 0
        assert len(steps) < 4096
        for index, step in enumerate(steps):
            if step[0] & 7 == 5:  # jumps
                assert index + 1 + max(step[2], step[3]) < len(steps)
        assert steps[-1][0] == 6


@pytest.mark.parametrize("machine", sorted(calls.MACHINES))
@pytest.mark.parametrize(
    ("name", "args", "allowed", "answer"),
    [
        ("execve", (), (), errno.EPERM),
        ("execve", (), ("process",), 0),
        ("clone", (0x3D0F00,), (), 0),
        ("clone", (0x01200011,), (), errno.EPERM),
        ("clone", (0x01200011,), ("process",), 0),
        ("clone", (0x10010F00,), (), errno.EPERM),
        ("clone", (0x10000011,), ("process",), errno.EPERM),
        ("clone3", (), ("process",), errno.ENOSYS),
        ("socket", (2,), (), errno.EACCES),
        ("socket", (1,), (), errno.EACCES),
        ("socket", (2,), ("network",), 0),
        ("socket", (40,), ("network",), errno.EACCES),
        ("socketpair", (1,), (), 0),
        ("kill", (77,), (), 0),
        ("kill", (78,), (), errno.EPERM),
        ("tgkill", (77,), (), 0),
        ("kill", (78,), ("signals",), 0),
        ("prlimit64", (0, 3, 0), (), 0),
        ("prlimit64", (0, 3, 4096), (), errno.EPERM),
        ("prlimit64", (0, 3, 1 << 32), (), errno.EPERM),
        ("prlimit64", (0, 3, 4096), ("amounts",), 0),
        ("ioctl", (0, 0x5412), (), errno.EPERM),
        ("ioctl", (0, 0x5401), (), 0),
        ("prctl", (15,), (), 0),
        ("prctl", (1,), (), errno.EPERM),
        ("bpf", (), ("process", "network", "signals", "amounts"), errno.EPERM),
    ],
)
def test_filter_answers(machine, name, args, allowed, answer):
    audit, numbers, _ = calls.MACHINES[machine]
    program = seccomp.build(machine, frozenset(allowed), 77)
    assert _answer(program, audit, numbers[name], args) == (0x50000 | answer if answer else 0x7FFF0000)


def test_filter_kills_a_foreign_architecture_and_knows_no_new_calls():
    program = seccomp.build("x86_64", frozenset(), 77)
    assert _answer(program, 0x40000003, 11, ()) == 0x80000000
    assert _answer(program, 0xC000003E, 0x40000000 | 59, ()) == 0x50000 | errno.ENOSYS


def _answer(program: bytes, audit: int, number: int, args: tuple[int, ...]) -> int:
    """What the kernel would do with this filter: classic BPF, the five instructions it is made of."""
    data = number.to_bytes(4, "little") + audit.to_bytes(4, "little") + bytes(8)
    data += b"".join(one.to_bytes(8, "little") for one in (*args, *(0,) * (6 - len(args))))
    word, at = 0, 0
    while True:
        code = int.from_bytes(program[at * 8 : at * 8 + 2], "little")
        jt, jf = program[at * 8 + 2], program[at * 8 + 3]
        k = int.from_bytes(program[at * 8 + 4 : at * 8 + 8], "little")
        at += 1
        if code == 0x06:
            return k
        if code == 0x20:
            word = int.from_bytes(data[k : k + 4], "little")
        else:
            taken = {0x15: word == k, 0x35: word >= k, 0x45: bool(word & k)}[code]
            at += jt if taken else jf
