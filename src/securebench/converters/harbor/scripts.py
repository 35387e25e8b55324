"""The scripts of a task directory: `tests/test.sh` turns a checker's word into a reward, `solution/solve.sh` lays a
reference over the workspace. Pure.

They work in Harbor's container and, imported again, in SecureBench's rooms, where the worker and the places of the
workspace are given already."""

from __future__ import annotations

import shlex
from importlib.resources import files

from securebench.verifiers.checkers.tools import worker_program

WORKER = "securebench-worker"
"""Where the stand-in for the worker lies in `/tests`."""
_REWARDS = "/logs/verifier"
_HEAD = """#!/bin/bash
# Made by `securebench convert harbor`. Runs the checker and writes its word as the reward. In Harbor this is the
# container in which the agent was: what it left behind here can lie.
export TEST_DIR=/tests
export SECUREBENCH_WORKDIR="${{SECUREBENCH_WORKDIR:-{workdir}}}"
export SECUREBENCH_WORKSPACE="${{SECUREBENCH_WORKSPACE:-$SECUREBENCH_WORKDIR}}"
mkdir -p {rewards}
rm -f {rewards}/reward.txt {rewards}/reward.json
cd /tests || exit 1
"""
_BESIDE = f"""# The worker of SecureBench where there is one; elsewhere a stand-in that executes right here.
[ -d /securebench/sdk ] || export PYTHONPATH="/tests/{WORKER}${{PYTHONPATH:+:$PYTHONPATH}}"
"""
_PYTEST = """if command -v pytest >/dev/null 2>&1; then pytest=(pytest)
elif python3 -c 'import pytest' 2>/dev/null; then pytest=(python3 -m pytest)
else
    echo "the image has no pytest, which this checker needs; nobody is scored" >&2
    exit 1
fi
"""
_TAIL = """code=$?
if [ "$code" -ne 0 ]; then
    rm -f {rewards}/reward.json
    echo 0 >{rewards}/reward.txt
elif [ ! -e {rewards}/reward.txt ] && [ ! -e {rewards}/reward.json ]; then
    echo {silent} >{rewards}/reward.txt
fi
"""


def reward_script(place: str, *, pytest: bool, worker: bool, must_reward: bool, workdir: str) -> str:
    """`tests/test.sh`: runs the checker at `place` in `/tests`, by pytest or as a script. A checker that fails gets 0
    whatever it wrote, one that succeeds and wrote nothing gets 1, unless it had to write a reward."""
    target = shlex.quote(f"/tests/{place}")
    command = f'"${{pytest[@]}}" -q {target}\n' if pytest else f"bash {target}\n"
    parts = [_HEAD.format(workdir=workdir, rewards=_REWARDS), _BESIDE if worker else "", _PYTEST if pytest else ""]
    return "".join([*parts, command, _TAIL.format(rewards=_REWARDS, silent=0 if must_reward else 1)])


def solve_script(workdir: str, any_files: bool = True) -> str:
    """`solution/solve.sh` for a reference that is files: lays them over the workspace."""
    target = shlex.quote(f"{workdir}/")
    head = "#!/bin/bash\n# Made by `securebench convert harbor`: the reference, as files.\n"
    return head if not any_files else f'{head}cp -R "${{0%/*}}/workspace/." {target}\n'


def worker_files() -> dict[str, str]:
    """The stand-in for `from securebench import worker`, by place in `/tests`."""
    here = files("securebench.converters.harbor").joinpath("worker_here.py.txt").read_text("utf-8")
    return {
        f"{WORKER}/securebench/__init__.py": '"""For checkers: `from securebench import worker`."""\n',
        f"{WORKER}/securebench/worker.py": here,
        f"{WORKER}/programs/call.py": worker_program("call"),
        f"{WORKER}/programs/http.py": worker_program("http"),
    }
