"""The words that start the guarded interpreter."""

from __future__ import annotations

import json

import pytest

from securebench.execution.interpreter import Interpreter
from securebench.execution.launch import Places, environment, guarded_argv, rlimits, tmp_size
from securebench.execution.request import Policy, PythonLimits, PythonRequest
from securebench.guard.params import Params
from securebench.sandboxes.base import ISOLATED, Guarantee

PLACES = Places("/root-1", "/guard", 9)
PYTHON = Interpreter("/usr/bin/python3")


def params(request: PythonRequest, *, seal: bool = True) -> dict[str, object]:
    argv = guarded_argv(request, PYTHON, PLACES, ISOLATED, seal=seal)
    assert argv[:4] == ("/usr/bin/python3", "-I", "-B", "/guard/bootstrap.py")
    Params(argv[4])  # the guard understands it
    return dict(json.loads(argv[4]))


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seal", [True, False])
def test_every_policy_is_understood_by_the_guard(policy: Policy, seal: bool) -> None:
    limits = PythonLimits(cpu_seconds=2.5)
    request = PythonRequest(b"", args=("-x", 'a "b"', "ü\ud800"), policy=policy, limits=limits, files={"m.py": b""})
    sent = params(request, seal=seal)
    assert (sent["policy"], sent["seal"], sent["args"]) == (policy, seal, list(request.args))
    assert (sent["program"], sent["root"], sent["modules"]) == ("/root-1/program.py", "/root-1", ["m", "program"])


def test_the_program_may_not_start_without_the_walls() -> None:
    assert params(PythonRequest(b""))["require"] == ["hook", "imports", "no_new_privs", "rlimits", "seccomp"]
    assert params(PythonRequest(b"", policy=Policy.OFF))["require"] == ["no_new_privs", "rlimits", "seccomp"]


def test_the_network_is_allowed_only_when_asked_for() -> None:
    assert params(PythonRequest(b""))["allow"] == []
    assert params(PythonRequest(b"", network=True))["allow"] == ["network"]


def test_memory_is_limited_inside_only_where_no_control_group_counts_it() -> None:
    request = PythonRequest(b"")
    assert "data" not in {name.lower() for name in rlimits(request, ISOLATED | {Guarantee.MEM_HARD})}
    assert request.limits.memory in rlimits(request, ISOLATED).values()


def test_the_root_is_exported_whatever_the_caller_says() -> None:
    env = environment(PythonRequest(b"", env={"AIBB_TMP": "/etc", "X": "1"}), "/root-1")
    assert env == {"AIBB_TMP": "/root-1", "TMPDIR": "/root-1", "HOME": "/root-1", "X": "1"}


def test_strict_leaves_next_to_nothing_to_write_outside_the_root() -> None:
    assert tmp_size(Policy.STRICT) < 100_000 < tmp_size(Policy.STANDARD)
