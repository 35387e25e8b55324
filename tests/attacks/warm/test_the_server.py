"""Attacks on the fork server itself, and what becomes of a verdict when it falls."""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from contextlib import nullcontext

import anyio
import pytest
from tests.attacks.warm.servers import SPEC, careless, do, in_warm_rooms, one_after_the_other, program, said

from securebench.errors import SandboxError
from securebench.sandboxes._bubblewrap.identity import lease_identity
from securebench.sandboxes._warm import server
from securebench.sandboxes.base import Command, Limits, Outcome, SandboxResult, SandboxSpec
from securebench.sandboxes.warm import WarmSandbox

MARK = "a-mark-that-only-one-room-was-told"


def test_it_cannot_be_seen_or_signalled() -> None:
    attack = """import os, signal
parent = os.getppid()
hit = []
for pid in [0, -1, 2, 3, 4, 5, 10]:
    try:
        os.kill(pid, signal.SIGTERM if pid > 0 else 0)
        hit.append(pid)
    except OSError:
        pass
print(parent, hit)
"""
    first, second = one_after_the_other(attack, "print('alive')")
    assert said(first) == "0 [0]"  # only its own group
    assert said(second) == "alive"


@pytest.mark.parametrize(
    "call", [(165, "mount"), (272, "unshare"), (308, "setns"), (101, "ptrace"), (155, "pivot_root")]
)
def test_what_the_server_may_do_its_processes_may_not(call: tuple[int, str]) -> None:
    number, _ = call
    attack = f"import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall({number}, 0, 0, 0, 0, 0), ctypes.get_errno())"
    assert said(one_after_the_other(attack)[0]) == "-1 1"


def test_a_room_makes_no_namespace_and_has_no_capability_to() -> None:
    attack = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
        "print(c.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), ctypes.get_errno(), "
        "open('/proc/self/status').read().split('CapEff:')[1].split()[0])"
    )
    assert said(one_after_the_other(attack)[0]) == "-1 1 0000000000000000"


def test_without_the_filter_and_with_capabilities_it_mounts() -> None:
    attack = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
        "print(c.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None), ctypes.get_errno())"
    )
    assert said(one_after_the_other(attack)[0]) == "-1 1"
    with careless("no filter", "capabilities are kept"):
        assert said(one_after_the_other(attack)[0]) == "0 0"


def test_what_one_room_was_told_is_in_no_later_rooms_memory() -> None:
    """The server never reads what is meant for a room, so no later one inherits it."""
    search = f"""import re
mark = ({MARK[:10]!r} + {MARK[10:]!r}).encode()
found = 0
with open('/proc/self/maps') as maps:
    spans = [line.split()[0] for line in maps if ' rw' in line and '[v' not in line]
with open('/proc/self/mem', 'rb', 0) as memory:
    for span in spans:
        start, end = (int(part, 16) for part in span.split('-'))
        memory.seek(start)
        found += memory.read(end - start).count(mark)
print(found > WANTED)
"""
    told = f"kept = {MARK!r} * 1000\n"
    same = told + search.replace("WANTED", "10")
    first, second = one_after_the_other(same, search.replace("WANTED", "10"))
    assert said(first) == "True"  # the search finds it where it is
    assert said(second) == "False"


def test_two_servers_do_not_hash_alike() -> None:
    look = "print(hash('a string'), id(object()))"

    async def body(sandbox: WarmSandbox) -> list[str]:
        here = [said(await do(sandbox, look)) for _ in range(2)]
        other = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=60, pids=33))
        return [*here, said(await do(sandbox, look, other))]

    first, second, third = (words.split()[0] for words in in_warm_rooms(body))
    assert first == second  # one server: as two runs of one process
    assert first != third


@pytest.mark.parametrize(
    "hog",
    [
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
        "import os\nfor _ in range(24):\n    if os.fork() == 0:\n        x = [bytearray(1 << 20) for _ in range(40)]\n        import time; time.sleep(20)\nos.wait()",
        "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()",
    ],
    ids=["one process", "many small ones", "shared memory"],
)
def test_memory_used_up_does_not_take_the_server_along(hog: str) -> None:
    spec = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=60, memory=200 << 20, pids=32, tmp=400 << 20))

    async def body(sandbox: WarmSandbox) -> tuple[list[SandboxResult], int]:
        before = sandbox.pool.started
        results = [await do(sandbox, hog, spec), await do(sandbox, "print('alive')", spec)]
        return results, sandbox.pool.started - before

    (hungry, after), started = in_warm_rooms(body)
    assert hungry.outcome is Outcome.OUT_OF_MEMORY or not hungry.ok
    assert said(after) == "alive"
    assert started == 1


@pytest.mark.parametrize(
    "fault",
    [
        "import os; os._exit(3)",
        "import os; os.abort()",
        "import ctypes; ctypes.string_at(0)",
        "import sys; sys.setrecursionlimit(10**9); f = lambda: f(); f()",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: break",
        "import os\nos.write(2, b'x' * (8 << 20))",
        "raise SystemExit('words')",
    ],
)
def test_no_fault_of_a_candidate_takes_the_server_down(fault: str) -> None:
    bad, good = one_after_the_other(fault, "print('alive')")
    assert not bad.ok or bad.outcome is Outcome.EXITED
    assert said(good) == "alive"


THREADS = """import _thread, os, time
try:
    while True: _thread.start_new_thread(time.sleep, (10,))
except RuntimeError: pass
time.sleep(0.1)
os._exit(0)
"""
IN_FLIGHT = """import os, socket, time
kept = []
try:
    while True:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        kept.append((ours, theirs))
        for _ in range(8): socket.send_fds(ours, [b'.'], [ours.fileno(), theirs.fileno()] * 100)
except OSError: pass
time.sleep(0.1)
os._exit(0)
"""
CROWDED = SandboxSpec(cwd="/tmp", limits=Limits(wall_seconds=60, pids=4))


async def _faults(sandbox: WarmSandbox, text: str, tries: int) -> int:
    """How often the host is blamed for a program that uses up, as soon as it begins, what its server needs for the next
    room."""
    at_once, faults = program(text), 0
    for _ in range(tries):
        try:
            assert (await sandbox.run(CROWDED, Command(at_once.argv, python=at_once))).exit_code == 0
        except SandboxError:
            faults += 1
    return faults


@pytest.mark.parametrize("text", [THREADS, IN_FLIGHT], ids=["processes", "descriptors in flight"])
def test_what_the_server_lacks_for_the_next_room_is_not_the_hosts_fault(text: str) -> None:
    async def body(sandbox: WarmSandbox) -> int:
        return await _faults(sandbox, text, 20)

    assert in_warm_rooms(body) == 0


@pytest.mark.parametrize("text", [THREADS, IN_FLIGHT], ids=["processes", "descriptors in flight"])
def test_where_the_server_gives_up_a_candidate_blames_the_host(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_OWN_LIMITS", (resource.RLIMIT_CPU,))

    async def body(sandbox: WarmSandbox) -> bool:
        for _ in range(100):
            if await _faults(sandbox, text, 10):
                return True
        return False

    with careless("no room is the end", "sockets may be left"):
        assert in_warm_rooms(body)


HOLDS = IN_FLIGHT.replace("time.sleep(0.1)", "print('full', flush=True); time.sleep(20)")


async def _beside(sandbox: WarmSandbox) -> SandboxResult:
    """What runs beside a candidate of the same user that keeps as many descriptors in flight as it may."""
    full = anyio.Event()

    async def hold() -> None:
        await do(sandbox, HOLDS, on_output=lambda *_: full.set())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await full.wait()
        result = await do(sandbox, "print('alive')")
        tasks.cancel_scope.cancel()
        return result
    raise AssertionError


@pytest.fixture
def one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sandboxes of an engine that is not root are one user to the kernel, which counts that."""
    with lease_identity() as identity:
        pass
    monkeypatch.setattr(server, "lease_identity", lambda: nullcontext(identity))


@pytest.mark.usefixtures("one_user")
def test_descriptors_that_one_room_has_in_flight_keep_no_other_from_starting() -> None:
    assert said(in_warm_rooms(_beside)) == "alive"


@pytest.mark.usefixtures("one_user")
def test_with_no_more_descriptors_than_its_rooms_a_server_could_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_OWN_LIMITS", (resource.RLIMIT_CPU,))
    with pytest.raises(BaseExceptionGroup) as caught:
        in_warm_rooms(_beside)
    assert caught.group_contains(SandboxError, match="Too many references")


def test_a_server_that_is_killed_is_replaced_and_its_command_is_the_hosts_fault() -> None:
    async def body(sandbox: WarmSandbox) -> SandboxResult:
        await do(sandbox, "pass")
        (fork_server,) = [one for some in sandbox.pool._idle.values() for one in some if one.spec == SPEC]
        failures: list[Exception] = []

        def running() -> list[int]:
            return [child.pid for child in fork_server._living.values() if child not in fork_server._ready]

        async def run() -> None:
            try:
                await do(sandbox, "import time; time.sleep(20)")
            except SandboxError as error:
                failures.append(error)

        while running():
            await anyio.sleep(0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            while not (pids := running()):
                await anyio.sleep(0.01)
            with open(f"/proc/{pids[0]}/status") as file:
                status = file.read()
            os.kill(int(re.findall(r"PPid:\s+(\d+)", status)[0]), signal.SIGKILL)
        assert len(failures) == 1
        return await do(sandbox, "print('replaced')")

    assert said(in_warm_rooms(body)) == "replaced"


def test_a_server_that_says_what_it_must_not_is_discarded() -> None:
    async def body(sandbox: WarmSandbox) -> tuple[SandboxResult, int]:
        await do(sandbox, "pass")
        before = sandbox.pool.started
        (fork_server,) = [one for some in sandbox.pool._idle.values() for one in some if one.spec == SPEC]
        with pytest.raises(SandboxError):
            fork_server._heard(["child", "nonsense", "more"], [])
        fork_server.discard()
        return await do(sandbox, "print('fresh')"), sandbox.pool.started - before

    result, started = in_warm_rooms(body)
    assert (said(result), started) == ("fresh", 1)


@pytest.mark.parametrize(
    "words",
    [
        ["end", "x", "0", "0", "0", "0"],
        ["end", "1", "x", "0", "0", "0"],
        ["end", "77", "0", "0", "0", "0"],
        ["end"],
        ["child", "x"],
        ["child", "7"],
        ["child", "7", "8"],
        [],
    ],
)
def test_whatever_it_says_ends_nobody_but_itself(words: list[str]) -> None:
    async def body(sandbox: WarmSandbox) -> SandboxResult:
        await do(sandbox, "pass")
        (fork_server,) = [one for some in sandbox.pool._idle.values() for one in some if one.spec == SPEC]
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
        with pytest.raises(SandboxError, match="a fork server said"):
            fork_server._heard(words, files)
        for file in files:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(file)
        return await do(sandbox, "print('alive')")

    assert said(in_warm_rooms(body)) == "alive"


def test_after_its_uses_a_server_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securebench.sandboxes._warm.pool.USES", 2)

    async def body(sandbox: WarmSandbox) -> tuple[list[str], int]:
        before = sandbox.pool.started
        hashes = [said(await do(sandbox, "print(hash('a string'))")) for _ in range(5)]
        return hashes, sandbox.pool.started - before

    hashes, started = in_warm_rooms(body)
    assert started == 3
    assert len(set(hashes)) == 3


def test_nothing_is_left_when_the_context_ends() -> None:
    mark = f"31.{time.time_ns()}"

    async def body(sandbox: WarmSandbox) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(do, sandbox, f"import os; os.execvp('sleep', ['sleep', {mark!r}])")
            while not _processes(mark):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    in_warm_rooms(body)
    assert _processes(mark) == []


def _processes(mark: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if mark.encode() in file.read():
                    found.append(name)
        except OSError:
            continue
    return found
