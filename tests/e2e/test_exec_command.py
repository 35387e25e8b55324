"""`securebench exec` as people and scripts use it."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import CLI, Finished, need_bubblewrap

from securebench.audit.cache import CACHE_SETTING
from securebench.cli.exec import LEVELS, POLICIES
from securebench.execution import isolation
from securebench.execution.interpreter import PYTHON_SETTING
from securebench.execution.request import ALLOWABLE, Policy

Execute = Callable[..., Finished]


@pytest.fixture(autouse=True, scope="module")
def audit_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The audit before a program is kept in a place of the tests', shared by all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_SETTING, str(shared / "audit-cache"))
        yield


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """`execute(source, *words)` runs the command on a file with this source."""
    need_bubblewrap()

    def run(source: str, *words: str | Path, stdin: bytes | None = b"", env: dict[str, str] | None = None) -> Finished:
        (tmp_path / "prog.py").write_text(source)
        done = subprocess.run(
            [*CLI, "exec", str(tmp_path / "prog.py"), *map(str, words)],
            input=stdin,
            capture_output=True,
            timeout=600,
            env=os.environ | (env or {}),
            check=False,
        )
        return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def test_a_program_runs_and_only_its_own_output_is_shown(execute: Execute) -> None:
    done = execute("import sys; print(sys.argv[1:], sys.stdin.read())", "--", "--mine", "x", stdin=b"given")
    assert (done.code, done.out, done.err) == (0, "['--mine', 'x'] given\n", "")


def test_a_program_that_fails_is_1_and_its_own_code_is_told(execute: Execute) -> None:
    done = execute("print('partly'); raise SystemExit(7)")
    assert (done.code, done.out, done.err) == (1, "partly\n", "securebench: the program exited with code 7\n")


@pytest.mark.parametrize(
    ("source", "words", "told"),
    [
        ("while True: pass", ("--timeout", "1"), "its time was up (1 s; --timeout)"),
        ("while True: pass", ("--cpu", "1"), "it used up its processor time (1.0 s; --cpu)"),
        ("x = [bytearray(1 << 20) for _ in range(9999)]", ("--mem", "64"), "ran out of memory (64 MiB; --mem)"),
        ("import os; os.abort()", (), "crashed with signal 6 (SIGABRT)"),
    ],
)
def test_each_end_is_told_in_words(execute: Execute, source: str, words: tuple[str, ...], told: str) -> None:
    done = execute(source, *words)
    assert done.code == 1
    assert told in done.err


def test_json_has_everything(execute: Execute) -> None:
    source = "try:\n    open('/etc/passwd')\nexcept RuntimeError:\n    print('no')\nopen('f', 'w').write('12345')\n"
    done = execute(source, "--json", "--pids", "20")
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = done.json
    assert {key: found[key] for key in ("outcome", "exit", "signal", "timed_out", "oom", "stdout", "stderr")} == {
        "outcome": "exited", "exit": 0, "signal": None, "timed_out": False, "oom": False, "stdout": "no\n", "stderr": "",
    }  # fmt: skip
    assert [(item["item"], item["file"], item["line"]) for item in found["blocked"]] == [("files", "prog.py", 2)]
    assert (found["bytes_written"], found["isolation"], found["assurance"]) == (5 + 3, "bubblewrap", "isolated")
    assert found["cpu"] > 0
    assert found["wall"] > 0
    assert found["peak_memory"] is None or found["peak_memory"] > 1 << 20
    assert {"hook", "seccomp"} <= set(found["guard"])


def test_json_of_a_failure_has_the_programs_own_code(execute: Execute) -> None:
    done = execute("import sys; sys.exit('bad')", "--json")
    assert done.code == 1
    assert (done.json["exit"], done.json["stderr"]) == (1, "bad\n")


def test_blocked_operations_are_listed_when_asked_for(execute: Execute) -> None:
    source = "import os\ntry:\n    os.system('id')\nexcept RuntimeError:\n    raise SystemExit(1)\n"
    quiet, loud = execute(source), execute(source, "--trace-blocked")
    assert "1 operation was blocked (--trace-blocked lists them)" in quiet.err
    assert loud.err.startswith("blocked: ")
    assert "prog.py:3" in loud.err


def test_inputs_go_in_and_outputs_come_out(execute: Execute, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in.txt").write_text("abc")
    (tmp_path / "helper.py").write_text("def up(text): return text.upper()")
    source = """
from helper import up
import os
os.mkdir("out")
open("out/result", "w").write(up(open("data/in.txt").read()))
"""
    words = ("--input", tmp_path / "data", "--input", tmp_path / "helper.py", "--output", "out/result")
    done = execute(source, *words, "--output-dir", tmp_path / "taken")
    assert (done.code, done.err) == (0, "")
    assert (tmp_path / "taken" / "out" / "result").read_text() == "ABC"
    again = execute(source, *words, "--output-dir", tmp_path / "taken")
    assert again.code == 2
    assert "is there already" in again.err


def test_an_output_that_is_missing_or_a_link_is_told_and_fails(execute: Execute, tmp_path: Path) -> None:
    source = "import os; os.symlink('prog.py', 'link')"
    words = ("--output", "link", "--output", "none", "--output-dir", tmp_path / "taken")
    done = execute(source, *words)
    assert done.code == 1
    assert "output link was not taken: link is or passes through a symbolic link" in done.err
    assert "output none was not taken: none does not exist" in done.err
    assert list((tmp_path / "taken").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--output", "x"), "--output needs --output-dir"),
        (("--unsafe", "--isolation", "bubblewrap"), "does not go with"),
        (("--timeout", "0"), "--timeout"),
        (("--mem", "lots"), "--mem"),
        (("--isolation", "none"), "--isolation"),
        (("--allow", "process"), "cannot be allowed"),
        (("--input", "/nowhere/at/all"), "does not exist"),
        (("--output", "../x", "--output-dir", "."), ".."),
    ],
)
def test_wrong_usage_is_2_with_a_reason(execute: Execute, words: tuple[str, ...], told: str) -> None:
    done = execute("print('ran')", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


def test_a_file_that_is_not_there_a_directory_or_misspelt_is_told_kindly(execute: Execute, tmp_path: Path) -> None:
    execute("")
    for path, told in ((tmp_path / "porg.py", "did you mean"), (tmp_path, "is a directory"), ("/dev/null", "regular")):
        done = subprocess.run([*CLI, "exec", str(path)], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_single_items_and_other_policies_open_what_they_say(execute: Execute) -> None:
    source = "print(eval('6 * 7'))"
    assert execute(source).code == 1
    assert execute(source, "--allow", "dynamic_code").out == "42\n"
    assert execute(source, "--policy", "standard").out == "42\n"
    assert execute("import pickle", "--allow", "imports:pickle").code == 0


def test_unsafe_warns_on_every_use_and_is_stamped(execute: Execute) -> None:
    token = secrets.token_hex(8)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(token)
        file.flush()
        for _ in range(2):
            done = execute("import sys; print(open(sys.argv[1]).read())", "--unsafe", "--json", "--", file.name)
            assert done.code == 0
            assert done.json["stdout"] == f"{token}\n"  # which nothing but no protection at all can do
            assert (done.json["assurance"], done.json["isolation"]) == ("unsafe", "unsafe")
            assert done.err.count("ALL PROTECTION IS OFF") == 1


def test_the_network_is_closed_unless_it_is_opened_loudly(execute: Execute) -> None:
    source = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).sendall(b'reached')"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1)
        port = str(listener.getsockname()[1])
        assert execute(source, "--policy", "off", "--", port).code == 1
        with pytest.raises(TimeoutError):
            listener.accept()
        done = execute(source, "--allow-network", "--json", "--", port)
        assert done.json["exit"] == 0, done.json
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(10) == b"reached"
    assert "THIS HOST'S NETWORK" in done.err
    assert done.json["assurance"] == "unsafe"
    assert "net" not in done.json["guarantees"]


def test_an_isolation_that_cannot_be_had_is_3_with_the_remedy(execute: Execute) -> None:
    done = execute("print('ran')", "--isolation", "docker", env={isolation.IMAGE_SETTING: ""})
    assert (done.code, done.out) == (3, "")
    assert isolation.IMAGE_SETTING in done.err


def test_nothing_to_confine_with_is_a_refusal_and_not_a_weaker_run(execute: Execute, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    patched = "import securebench.sandboxes._bubblewrap.host as host; host._PATH = '/nowhere'"
    start = f"{patched}; from securebench.cli import main; main()"
    (tmp_path / "prog.py").write_text("print('ran')")
    env = {**os.environ, "PATH": str(tmp_path / "empty")}
    argv = [sys.executable, "-c", start, "exec", str(tmp_path / "prog.py")]
    done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "bwrap is not installed" in done.stderr
    assert "--isolation guard" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_130_and_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    need_bubblewrap()
    token = secrets.token_hex(8)
    (tmp_path / "prog.py").write_text("import time; print('up', flush=True); time.sleep(600)")
    argv = [*CLI, "exec", str(tmp_path / "prog.py"), "--timeout", "500", "--", token]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(120) == 130
    assert said == b"interrupted\n"
    assert _processes_with(token) == []
    assert not list(Path(tempfile.gettempdir()).glob(f"securebench-{process.pid}-*"))


def test_a_killed_command_takes_its_program_with_it(tmp_path: Path) -> None:
    need_bubblewrap()
    token = secrets.token_hex(8)
    (tmp_path / "prog.py").write_text("import time; print('up', flush=True); time.sleep(600)")
    argv = [*CLI, "exec", str(tmp_path / "prog.py"), "--timeout", "500", "--", token]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.kill()
        process.wait(120)
    deadline = time.monotonic() + 90
    while _processes_with(token) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_with(token) == []
    # What a killed engine leaves on disk, the next clean-up finds.
    subprocess.run([*CLI, "doctor", "--clean"], capture_output=True, timeout=300, check=False)
    assert not list(Path(tempfile.gettempdir()).glob(f"securebench-{process.pid}-*"))


def _processes_with(token: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path) -> None:
    need_bubblewrap()
    (tmp_path / "prog.py").write_text("import sys; print(repr(sys.stdin.read()))")
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *CLI, "exec", str(tmp_path / "prog.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "''\n"), done.stderr


def test_a_terminal_gets_no_escape_sequence_of_the_programs(tmp_path: Path) -> None:
    need_bubblewrap()
    (tmp_path / "prog.py").write_text(r"print('\x1b]0;title\x07 é ok')")
    ours, theirs = os.openpty()
    argv = [*CLI, "exec", str(tmp_path / "prog.py")]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        done = subprocess.run(argv, stdin=null, stdout=theirs, stderr=pipe, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        os.set_blocking(ours, False)  # all of it is there; a terminal without any must not hang the test
        shown = os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"\x1b" not in shown
    assert "\\x1b]0;title\\x07 é ok".encode() in shown


def test_bytes_pass_unchanged_to_a_file(execute: Execute, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(r"import sys; sys.stdout.buffer.write(bytes(range(256)))")
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            [*CLI, "exec", str(tmp_path / "prog.py")], stdin=subprocess.DEVNULL, stdout=out, timeout=300, check=True
        )
    assert (tmp_path / "out").read_bytes() == bytes(range(256))


def test_the_choices_on_the_command_line_are_those_of_the_library() -> None:
    assert LEVELS == isolation.LEVELS
    assert tuple(Policy) == POLICIES


def test_help_names_every_documented_flag() -> None:
    done = subprocess.run([*CLI, "exec", "--help"], capture_output=True, text=True, timeout=300, check=True)
    flags = "timeout mem cpu cpu-share pids allow-network unsafe isolation policy allow input output output-dir json"
    for flag in [*flags.split(), "trace-blocked"]:
        assert f"--{flag} " in done.stdout, flag
    words = re.split(r"[\s,.]+", done.stdout)
    for word in (*ALLOWABLE, isolation.IMAGE_SETTING, PYTHON_SETTING):
        assert word in words, word
