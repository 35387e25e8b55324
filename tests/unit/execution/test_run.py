"""Programs in the real sandbox of the default level: what comes back, and what is left of them afterwards."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap

from securebench._leftovers import owned_name
from securebench.errors import SandboxError, SandboxUnavailable
from securebench.execution.guard_files import guard_directory
from securebench.execution.interpreter import Interpreter
from securebench.execution.isolation import Isolation, select_isolation, unsafe_isolation
from securebench.execution.request import Policy, PythonLimits, PythonRequest, PythonResult
from securebench.execution.run import run_python
from securebench.sandboxes.base import ISOLATED, MIB, Outcome


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    need_bubblewrap()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Whatever a test did, no directory of ours remains but the guard's own, and no process of a program's."""
    yield
    ours = owned_name("").rstrip("-")
    left = {path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(ours)}
    assert left <= {guard_directory()}


def run(source: str, level: str | Isolation = "auto", *, seal: bool = True, **fields: Any) -> PythonResult:
    async def go() -> PythonResult:
        return await run_python(PythonRequest(source.encode(), **fields), level, seal=seal)

    return anyio.run(go)


def processes_with(token: str) -> list[str]:
    """Live processes of this host whose command line or environment has the token."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_streams_arguments_and_exit_code_are_the_programs_own() -> None:
    source = "import sys; print(sys.argv[1:], input()); print('oops', file=sys.stderr); sys.exit(3)"
    result = run(source, args=("-x", "two words", "--", "ü"), stdin=b"line\n")
    assert (result.outcome, result.exit_code, result.signal) == (Outcome.EXITED, 3, None)
    assert result.stdout.data.decode() == "['-x', 'two words', '--', 'ü'] line\n"
    assert result.stderr.data == b"oops\n"
    assert not result.ok


def test_a_result_says_how_it_was_confined() -> None:
    result = run("print(1)")
    assert result.ok
    assert (result.isolation, result.assurance) == ("bubblewrap", "isolated")
    assert result.guarantees >= ISOLATED
    assert {"hook", "imports", "seccomp", "rlimits", "no_new_privs"} <= set(result.installed)
    assert result.wall_seconds > 0
    assert result.cpu_seconds is not None
    assert result.cpu_seconds > 0


def test_every_run_has_a_root_of_its_own_with_its_inputs_and_nothing_else() -> None:
    source = "import os; print(os.environ['AIBB_TMP'], os.getcwd(), sorted(os.listdir()), open('d/x').read())"
    results = [run(source, name="main.py", files={"d/x": b"data"}) for _ in range(2)]
    roots = set()
    for result in results:
        root, cwd, rest = result.stdout.data.decode().split(" ", 2)
        assert root == cwd
        assert rest == "['d', 'main.py'] data\n"
        roots.add(root)
    assert len(roots) == 2


def test_nothing_of_our_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    result = run("import os; print(dict(os.environ))", env={"GIVEN": "1"})
    assert b"hunter2" not in result.stdout.data
    assert b"'GIVEN': '1'" in result.stdout.data


def test_declared_outputs_are_taken_and_others_are_not() -> None:
    source = "import os; os.mkdir('out'); open('out/a', 'w').write('A'); open('b', 'w').write('B')"
    result = run(source, outputs=("out/a", "missing"))
    assert result.ok
    assert result.outputs == {"out/a": b"A"}
    assert list(result.refused) == ["missing"]
    assert result.bytes_written == 2


def test_an_output_that_is_a_link_is_refused() -> None:
    result = run("import os; os.symlink('/etc/passwd', 'out')", policy=Policy.OFF, outputs=("out",))
    assert result.ok, result.stderr.data
    assert result.outputs == {}
    assert "symbolic link" in result.refused["out"]


LIMITED = {
    "time": ("while True: pass", {"timeout": 1.0}, Outcome.TIMEOUT),
    "sleep": ("import time; time.sleep(600)", {"timeout": 1.0}, Outcome.TIMEOUT),
    "cpu": ("while True: pass", {"cpu_seconds": 1.0}, Outcome.CPU_LIMIT),
    "memory": ("held = [bytearray(1 << 20) for _ in range(4096)]", {"memory": 64 * MIB}, Outcome.OUT_OF_MEMORY),
    "output": ("while True: print('x' * 1000)", {"output": 100_000}, Outcome.OUTPUT_LIMIT),
    "stderr": ("import sys\nwhile True: sys.stderr.write('x' * 1000)", {"output": 100_000}, Outcome.OUTPUT_LIMIT),
    "crash": ("import os; os.abort()", {}, Outcome.SIGNALLED),
    "error": ("raise SystemExit(9)", {}, Outcome.EXITED),
}


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize(("level", "policy"), [("auto", Policy.STRICT), ("auto", Policy.OFF), ("guard", Policy.STRICT)])
def test_the_ways_to_end_are_told_apart(name: str, level: str, policy: Policy) -> None:
    source, limits, outcome = LIMITED[name]
    result = run(source, level, policy=policy, limits=PythonLimits(**{"timeout": 60.0, **limits}))  # type: ignore[arg-type]
    assert result.outcome is outcome, result
    assert result.timed_out is (outcome is Outcome.TIMEOUT)
    assert result.oom is (outcome is Outcome.OUT_OF_MEMORY)
    if name == "crash":
        assert result.signal == signal.SIGABRT


def test_files_descriptors_disk_and_threads_are_limited() -> None:
    source = """
import threading, time
def attempt(name, action):
    try:
        action()
    except (OSError, RuntimeError) as error:
        print(name, type(error).__name__)
    else:
        print(name, "UNLIMITED")
def large():
    with open("large", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
def full():
    for number in range(64):
        with open(f"part{number}", "wb") as file:
            file.write(bytes(1 << 20))
def descriptors():
    held = [open("program.py") for _ in range(500)]
def threads():
    event = threading.Event()
    try:
        for _ in range(200):
            threading.Thread(target=event.wait, daemon=True).start()
    finally:
        event.set()
attempt("size", large)
attempt("disk", full)
attempt("descriptors", descriptors)
attempt("threads", threads)
"""
    limits = PythonLimits(file_size=2 * MIB, disk=8 * MIB, open_files=64, pids=16)
    result = run(source, limits=limits, policy=Policy.OFF)
    assert result.ok, result.stderr.data
    assert result.stdout.data.decode().split("\n")[:-1] == [
        "size OSError",
        "disk OSError",
        "descriptors OSError",
        "threads RuntimeError",
    ]


def test_a_share_of_a_core_holds() -> None:
    isolation = anyio.run(select_isolation)
    if not isolation.cpu_share:
        pytest.skip("this host gives us no cpu controller")
    result = run("while True: pass", limits=PythonLimits(timeout=3.0, cpu_share=0.2))
    assert result.timed_out
    assert result.cpu_seconds is not None
    assert result.cpu_seconds < 1.8


def test_a_share_of_a_core_that_cannot_be_enforced_is_refused() -> None:
    isolation = replace(anyio.run(select_isolation), cpu_share=False)
    with pytest.raises(SandboxUnavailable, match="control groups"):
        run("", isolation, limits=PythonLimits(cpu_share=0.5))


@pytest.mark.parametrize("code", [120, 121])
def test_the_guards_own_exit_codes_are_the_programs_once_it_runs(code: int) -> None:
    result = run(f"raise SystemExit({code})")
    assert (result.outcome, result.exit_code) == (Outcome.EXITED, code)


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/nowhere/python3"])
def test_a_guard_that_does_not_start_is_never_a_result(program: str) -> None:
    isolation = replace(anyio.run(select_isolation), interpreter=Interpreter(program))
    with pytest.raises(SandboxError, match="guard did not start"):
        run("print('ran')", isolation)


def test_a_blocked_operation_is_reported_with_its_source_line() -> None:
    source = "\n\ntry:\n    open('/etc/passwd')\nexcept RuntimeError as error:\n    print(error)\n"
    result = run(source, name="main.py")
    assert result.ok, result.stderr.data
    (blocked,) = result.blocked
    assert (blocked.item, blocked.place) == ("files", "main.py:4")
    assert "/etc/passwd" in blocked.message


@pytest.mark.parametrize("level", ["bubblewrap", "guard"])
def test_where_no_descriptor_can_be_inherited_the_report_is_a_file_out_of_the_programs_sight(level: str) -> None:
    isolation = replace(anyio.run(select_isolation, level), channels=False)
    source = "import os\nprint(os.listdir())\ntry: open('/etc/passwd')\nexcept RuntimeError: pass"
    result = run(source, isolation)
    assert (result.stdout.data, len(result.blocked)) == (b"['program.py']\n", 1), result
    assert "hook" in result.installed


def test_a_flood_of_blocked_operations_does_not_hold_the_program_up() -> None:
    source = "for _ in range(20000):\n    try: open('/etc/passwd')\n    except RuntimeError: pass\nprint('done')"
    result = run(source)
    assert result.stdout.data == b"done\n"
    assert result.blocked


@pytest.mark.parametrize("level", ["auto", "guard"])
def test_orphans_of_double_forks_end_with_the_program(level: str) -> None:
    token = secrets.token_hex(8)
    source = f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "{token}"])
    os._exit(0)
os.wait()
time.sleep(0.3)
print("forked")
"""
    result = run(source, level, policy=Policy.OFF, seal=False)  # nothing but the backend stands in the way
    assert result.stdout.data == b"forked\n", result.stderr.data
    assert processes_with(token) == []


PROBE = """
import ctypes, os, socket, sys
def attempt(name, action):
    try:
        print(name, "DONE", action(), flush=True)
    except BaseException:
        print(name, "refused", flush=True)
def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1]
def spawn():
    return os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)[1]
def native_fork():
    libc = ctypes.CDLL(None)
    pid = libc.fork()
    if pid == 0:
        os._exit(0)
    if pid < 0:
        raise OSError
    return os.waitpid(pid, 0)[1]
attempt("fork", fork)
attempt("native fork", native_fork)
attempt("spawn", spawn)
attempt("secret", lambda: open(sys.argv[1]).read())
attempt("stat", lambda: os.stat(sys.argv[1]).st_size)
attempt("write", lambda: open("/usr/planted", "w"))
attempt("change", lambda: open(__file__.replace("program.py", "../planted"), "w"))
attempt("socket", lambda: socket.socket())
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2))
attempt("engine", lambda: os.kill(int(sys.argv[3]), 0))
attempt("exec", lambda: os.execv("/bin/echo", ["echo", "exec", "DONE"]))
"""


@pytest.fixture
def outside() -> Iterator[tuple[str, ...]]:
    """A file, a listener and a process of ours, as arguments of the probe."""
    with tempfile.NamedTemporaryFile("w") as file, socket.create_server(("127.0.0.1", 0)) as listener:
        file.write("token")
        file.flush()
        os.chmod(file.name, 0o644)
        yield file.name, str(listener.getsockname()[1]), str(os.getpid())


def _done(result: PythonResult) -> set[str]:
    lines = result.stdout.data.decode().splitlines()
    return {line.partition(" DONE")[0] for line in lines if " DONE" in line}


def test_with_the_guard_deleted_every_guarantee_still_holds(outside: tuple[str, ...]) -> None:
    result = run(PROBE, policy=Policy.OFF, args=outside)
    assert "hook" not in result.installed
    assert result.stdout.data.count(b"refused") == 12, result
    assert _done(result) == set()


def test_without_the_seal_processes_can_be_made_and_nothing_else(outside: tuple[str, ...]) -> None:
    """The control of the walls inside the process: what they alone hold is free without them."""
    result = run(PROBE, policy=Policy.OFF, seal=False, args=outside)
    assert {"fork", "native fork", "spawn", "exec"} <= _done(result), result
    assert not _done(result) & {"secret", "stat", "write", "change", "connect", "engine"}


def test_without_any_wall_the_probe_does_what_it_claims(outside: tuple[str, ...]) -> None:
    """The control of the backend's walls. The probe is ours and harmless: what it writes goes with the root."""
    harmless = PROBE.replace("/usr/planted", os.path.join(tempfile.gettempdir(), f"securebench-planted-{os.getpid()}"))
    try:
        result = run(harmless, anyio.run(unsafe_isolation), args=outside, limits=PythonLimits(timeout=60))
    finally:
        Path(tempfile.gettempdir(), f"securebench-planted-{os.getpid()}").unlink(missing_ok=True)
    everything = {"fork", "native fork", "spawn", "secret", "stat", "write", "change", "socket", "unix", "connect"}
    assert everything | {"engine", "exec"} <= _done(result), result
    assert (result.isolation, result.assurance) == ("unsafe", "unsafe")


def test_the_guard_by_itself_holds_what_it_can_and_is_labelled(outside: tuple[str, ...]) -> None:
    source = PROBE.replace("import ctypes, os", "import os") + "print('reached')"
    result = run(source, "guard", args=outside)
    assert _done(result) == {"stat"}, result  # which neither guard nor Landlock sees; a mount namespace hides the file
    assert b"reached" in result.stdout.data
    assert (result.isolation, result.assurance, result.guarantees) == ("guard", "guarded", frozenset())


def test_the_guards_root_on_the_host_is_private_and_goes_with_the_run() -> None:
    source = """
import os
print(os.environ["AIBB_TMP"], os.getcwd(), sorted(os.listdir()))
os.mkdir("locked")
open("locked/file", "w").close()
os.chmod("locked", 0)
open("out", "w").write("kept")
"""
    result = run(source, "guard", outputs=("out",))
    assert result.ok, result.stderr.data
    root, cwd, listed = result.stdout.data.decode().split(" ", 2)
    assert (root, listed, result.outputs) == (cwd, "['program.py']\n", {"out": b"kept"})
    assert not Path(root).parent.exists()


def test_a_channel_is_handed_down_beside_the_guards_report() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        source = "import os; os.write(5, b'through'); print(os.read(5, 10))"
        ours.sendall(b"back")
        result = run(source, channels={5: theirs})
        assert result.stdout.data == b"b'back'\n", result.stderr.data
        assert ours.recv(10) == b"through"


def test_programs_side_by_side_do_not_meet() -> None:
    source = "import sys, time; time.sleep(0.2); print(sys.argv[1]); open('out', 'w').write(sys.argv[1])"
    results: dict[str, PythonResult] = {}

    async def one(name: str) -> None:
        results[name] = await run_python(PythonRequest(source.encode(), args=(name,), outputs=("out",)))

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(one, str(number))

    anyio.run(go)
    for name, result in results.items():
        assert (result.stdout.data, result.outputs) == (f"{name}\n".encode(), {"out": name.encode()})


def test_a_run_that_is_cancelled_leaves_nothing() -> None:
    token = secrets.token_hex(8)
    source = "import time; print('up', flush=True); time.sleep(600)"

    async def go() -> bool:
        with anyio.CancelScope() as scope:
            request = PythonRequest(source.encode(), args=(token,), on_output=lambda *_: scope.cancel())
            await run_python(request)
        return scope.cancelled_caught

    assert anyio.run(go)
    assert processes_with(token) == []


def test_a_limit_below_what_the_interpreter_needs_is_the_limits_result() -> None:
    result = run("print(1)", limits=PythonLimits(memory=1 * MIB))
    assert result.outcome in (Outcome.OUT_OF_MEMORY, Outcome.TIMEOUT)
