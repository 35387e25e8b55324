"""What a candidate could leave in its warm room for the next one from the same fork server. Each trick beside a server
that was built without the defence, where it works."""

from __future__ import annotations

import socket
import time

import pytest
from tests.attacks.warm.servers import careless, do, in_warm_rooms, one_after_the_other, said

from securebench.audit.warm_rooms import check_succession
from securebench.sandboxes._warm.server import Child, ForkServer
from securebench.sandboxes.base import Limits, Outcome, SandboxSpec
from securebench.sandboxes.warm import WarmSandbox

LIBC = "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
TRICKS = {
    "a file in /tmp": (
        "open('/tmp/left', 'w').write('answer')",
        "import os; print(os.path.exists('/tmp/left'))",
        "no private directories",
    ),
    "a file in /dev/shm": (
        "open('/dev/shm/left', 'w').write('answer')",
        "import os; print(os.path.exists('/dev/shm/left'))",
        "no private directories",
    ),
    "System V shared memory": (
        LIBC + "assert c.shmget(4217, 4096, 0o1666) >= 0",
        LIBC + "print(c.shmget(4217, 0, 0) >= 0)",
        "no IPC namespace",
    ),
    "a System V semaphore": (
        LIBC + "assert c.semget(4217, 1, 0o1666) >= 0",
        LIBC + "print(c.semget(4217, 0, 0) >= 0)",
        "no IPC namespace",
    ),
    "a System V message": (
        LIBC + "q = c.msgget(4217, 0o1666); assert q >= 0",
        LIBC + "print(c.msgget(4217, 0) >= 0)",
        "no IPC namespace",
    ),
    "a POSIX message queue": (
        LIBC + "assert c.mq_open(b'/left', 0o102, 0o666, None) >= 0 or ctypes.get_errno() == 38",
        LIBC + "print(c.mq_open(b'/left', 0) >= 0)",
        None,
    ),
    "the time of a device": (
        "import os\ntry: os.utime('/dev/pts/ptmx', (4217, 4217))\nexcept OSError: pass",
        "import os; print(os.stat('/dev/pts/ptmx').st_mtime == 4217)",
        "devices are open to changes",
    ),
    "the mode of a device": (
        "import os\ntry: os.chmod('/dev/pts/ptmx', 0)\nexcept OSError: pass",
        "import os; print(os.stat('/dev/pts/ptmx').st_mode & 0o777 == 0)",
        "devices are open to changes",
    ),
    "the time of a device of the host": (
        "import os\ntry: os.utime('/dev/full')\nexcept OSError: pass",
        "import os, time; print(time.time() - os.stat('/dev/full').st_mtime < 2)",
        "devices are open to changes",
    ),
}


@pytest.mark.parametrize("name", TRICKS)
def test_the_next_room_finds_nothing_of_it(name: str) -> None:
    leave, look, _ = TRICKS[name]
    left, seen = one_after_the_other(leave, look)
    assert left.exit_code == 0, left.stderr.data
    assert said(seen) == "False"


@pytest.mark.parametrize("name", [name for name, (_, _, control) in TRICKS.items() if control])
def test_a_careless_server_hands_it_on(name: str) -> None:
    leave, look, control = TRICKS[name]
    assert control is not None
    with careless(control):
        left, seen = one_after_the_other(leave, look)
    assert left.exit_code == 0, left.stderr.data
    assert said(seen) == "True"


def test_what_a_candidate_does_to_its_interpreter_stays_with_it() -> None:
    poison = (
        "import builtins, sys, json, math\n"
        "builtins.len = lambda _: 42; sys.modules['json'].loads = lambda _: 'poisoned'; math.pi = 3\n"
        "sys.path.insert(0, '/poison'); sys.meta_path.clear(); sys.setrecursionlimit(50)\n"
    )
    look = "import sys, json, math; print(len('abc'), json.loads('1'), math.pi > 3, '/poison' in sys.path)"
    first, second, third = one_after_the_other(poison + "print(len(''))", look, look)
    assert said(first) == "42"  # it worked there
    assert said(second) == said(third) == "3 1 True False"


def test_a_process_left_behind_is_gone_before_the_next_room_begins() -> None:
    leave = """import os, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(0.01)
        os._exit(0)
print(sum(name.isdigit() for name in os.listdir('/proc')) >= 6)
"""
    look = "import os; print(sorted(name for name in os.listdir('/proc') if name.isdigit()))"
    left, seen = one_after_the_other(leave, look)
    assert said(left) == "True"
    assert said(seen) == "['1']"


def test_an_abstract_socket_ends_with_its_room() -> None:
    listen = (
        "import socket, os; s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen(); print(s.getsockname())"
    )
    try_it = """import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect('\\0left')
    print('connected')
except OSError as error:
    print(error.errno)
s.bind('\\0left')
"""
    left, seen = one_after_the_other(listen, try_it)
    assert said(left) == "b'\\x00left'"
    assert said(seen) == "111"


CYCLE = """import socket
kept = []
for number in range(20):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    named = socket.socket(socket.AF_UNIX)
    named.bind('\\0answer%d' % number)
    socket.send_fds(ours, [b'.'], [ours.fileno(), theirs.fileno(), named.fileno()])
    kept.append((ours, theirs, named))
"""
NAMES = "print(any('answer' in row for row in open('/proc/net/unix')))"


async def _finds_names(sandbox: WarmSandbox) -> bool:
    """Sockets that hold each other in their queues outlive their processes, until the kernel looks for such."""
    await do(sandbox, CYCLE)
    return said(await do(sandbox, NAMES)) == "True"


def test_sockets_that_keep_each_other_alive_tell_the_next_room_nothing() -> None:
    async def body(sandbox: WarmSandbox) -> list[bool]:
        return [await _finds_names(sandbox) for _ in range(5)]

    assert not any(in_warm_rooms(body))


def test_who_ends_before_the_engine_has_closed_its_door_costs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(socket.socket):
        def close(self) -> None:
            time.sleep(0.02)  # the engine was not given the processor
            super().close()

    real = Child.begin

    def begin(child: Child, streams: tuple[int, int, int]) -> None:
        child.door = Slow(fileno=child.door.detach())
        real(child, streams)

    monkeypatch.setattr(Child, "begin", begin)
    assert [said(result) for result in one_after_the_other(*["import os; print(1, flush=True); os._exit(0)"] * 5)] == [
        "1"
    ] * 5


def test_their_names_are_read_by_the_next_where_nobody_counts_them() -> None:
    async def body(sandbox: WarmSandbox) -> bool:
        for _ in range(200):
            if await _finds_names(sandbox):
                return True
        return False

    with careless("sockets may be left"):
        assert in_warm_rooms(body)


SMALL = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=60, memory=200 << 20, pids=32))
SEGMENT = (
    LIBC + "import os; c.shmat.restype = ctypes.c_void_p; size = 160 << 20\n"
    "ctypes.memset(c.shmat(c.shmget(0, size, 0o1666), None, 0), 1, size); os._exit(0)"
)
GREEDY = "import os; size = bytearray(150 << 20); os._exit(0)"


async def _short_of_memory(sandbox: WarmSandbox) -> bool:
    """The kernel frees shared memory some time after it has ended the processes that had it."""
    assert (await do(sandbox, SEGMENT, SMALL)).exit_code == 0
    return (await do(sandbox, GREEDY, SMALL)).outcome is Outcome.OUT_OF_MEMORY


def test_the_next_room_has_all_of_its_memory() -> None:
    async def body(sandbox: WarmSandbox) -> list[bool]:
        return [await _short_of_memory(sandbox) for _ in range(10)]

    assert not any(in_warm_rooms(body))


def test_where_nobody_looks_the_next_room_pays_for_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkServer, "clean", True)

    async def body(sandbox: WarmSandbox) -> bool:
        ends = time.monotonic() + 300  # the busier the machine is, the later the next room begins
        while time.monotonic() < ends:
            if await _short_of_memory(sandbox):
                return True
        return False

    assert in_warm_rooms(body)


def test_a_room_inherits_nothing_but_its_streams() -> None:
    look = (
        "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)))"
    )
    first, second = one_after_the_other(look, look)
    assert said(first) == said(second) == "[0, 1, 2]"


def test_chance_differs_between_rooms() -> None:
    roll = "import random, uuid, tempfile, os; print(random.random(), uuid.uuid4(), tempfile.mktemp(), os.urandom(4).hex())"
    rolls = [said(result).split() for result in one_after_the_other(roll, roll, roll)]
    for column in zip(*rolls, strict=True):
        assert len(set(column)) == 3, column


def test_the_keyring_is_out_of_reach() -> None:
    add = LIBC + "k = c.syscall(248, b'user', b'left', b'answer', 6, -4); print(k < 0, ctypes.get_errno() in (1, 38))"
    assert said(one_after_the_other(add)[0]) == "True True"


def test_the_audit_finds_nothing_that_is_left() -> None:
    assert in_warm_rooms(check_succession).passed


@pytest.mark.parametrize("how", ["no IPC namespace", "no private directories", "devices are open to changes"])
def test_the_audit_finds_out_about_a_careless_server(how: str) -> None:
    with careless(how):
        assert not in_warm_rooms(check_succession).passed
