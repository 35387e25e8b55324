"""The docker level of `exec`: the same request, the same result, in a container of an image with python3."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.docker.engine import IMAGE, docker, own_containers
from tests.e2e.workbench import CLI

from securebench.audit.cache import CACHE_SETTING
from securebench.execution.isolation import IMAGE_SETTING, Isolation, Wish, select_isolation
from securebench.execution.request import Policy, PythonLimits, PythonRequest, PythonResult
from securebench.execution.run import run_python
from securebench.sandboxes.base import ISOLATED, Outcome
from securebench.sandboxes.docker import DockerSandbox


@pytest.fixture(scope="module")
def isolation() -> Isolation:
    capabilities = anyio.run(DockerSandbox().probe)
    reason = "" if capabilities.usable else capabilities.remedy or "docker is not usable here"
    if capabilities.usable and docker("image", "inspect", IMAGE).returncode:
        reason = f"image {IMAGE} is missing: run scripts/ci-docker"
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)
    return anyio.run(select_isolation, "docker", Wish(image=IMAGE))


def run(isolation: Isolation, source: str, **fields: Any) -> PythonResult:
    async def go() -> PythonResult:
        return await run_python(PythonRequest(source.encode(), **fields), isolation)

    return anyio.run(go)


def test_a_program_runs_guarded_and_its_outputs_come_out(isolation: Isolation) -> None:
    source = """
import os, sys
from helper import double
print(os.environ["AIBB_TMP"] == os.getcwd(), sys.argv[1:], input(), double(21), sorted(os.listdir()))
open("out", "w").write("kept")
try:
    open("/etc/passwd")
except RuntimeError:
    sys.exit(5)
"""
    files = {"helper.py": b"def double(number): return 2 * number"}
    result = run(isolation, source, files=files, args=("a b",), stdin=b"line\n", outputs=("out",))
    assert (result.outcome, result.exit_code) == (Outcome.EXITED, 5), result
    assert result.stdout.data == b"True ['a b'] line 42 ['helper.py', 'program.py']\n"
    assert result.outputs == {"out": b"kept"}
    assert [(blocked.item, blocked.place) for blocked in result.blocked] == [("files", "program.py:7")]
    assert (result.isolation, result.assurance) == ("docker", "isolated")
    assert result.guarantees >= ISOLATED
    assert {"hook", "imports", "seccomp", "no_new_privs"} <= set(result.installed)
    assert own_containers() == []


PROBE = """
import os, socket
def attempt(name, action):
    try:
        print(name, "DONE", action())
    except BaseException:
        print(name, "refused")
attempt("fork", os.fork)
attempt("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("socket", socket.socket)
attempt("write", lambda: open("/usr/planted", "w"))
attempt("exec", lambda: os.execv("/bin/echo", ["echo", "exec", "DONE"]))
"""


def test_with_the_guard_deleted_the_kernel_still_refuses(isolation: Isolation) -> None:
    result = run(isolation, PROBE, policy=Policy.OFF)
    assert "hook" not in result.installed
    assert result.stdout.data.decode().split() == [
        "fork",
        "refused",
        "spawn",
        "refused",
        "socket",
        "refused",
        "write",
        "refused",
        "exec",
        "refused",
    ]


def test_the_watchdog_ends_the_container(isolation: Isolation) -> None:
    result = run(isolation, "while True: pass", limits=PythonLimits(timeout=2.0))
    assert result.timed_out
    assert own_containers() == []


def test_the_command_takes_the_image_from_the_setting(isolation: Isolation, tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("import sys; sys.exit(len(sys.stdin.read()))")
    argv = [*CLI, "exec", str(tmp_path / "prog.py"), "--isolation", "docker"]
    env = {**os.environ, IMAGE_SETTING: IMAGE, CACHE_SETTING: str(tmp_path / "cache")}
    done = subprocess.run(argv, input=b"four", capture_output=True, env=env, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (1, b"securebench: the program exited with code 4\n")
