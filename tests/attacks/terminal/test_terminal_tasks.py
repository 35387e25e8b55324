"""Honest workspaces pass, wrong ones fail, cheats score nothing: many tasks, real sandboxes, the real verifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.attacks.terminal.cheats import CHEATS, Cheat
from tests.attacks.terminal.judging import judge, make_pack
from tests.attacks.terminal.tasks import TASKS, TerminalTask
from tests.e2e.workbench import need_bubblewrap

from securebench.dangerous_commands import VerificationPolicy
from securebench.errors import ConfigError, FailureReason
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.verifiers.base import Assurance

BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    need_bubblewrap()
    directory = tmp_path_factory.mktemp("terminal")
    return {task.name: make_pack(directory / task.name / "pack", task.tests, task.evaluation) for task in TASKS}


@pytest.mark.parametrize("name", BY_NAME)
def test_honest_workspace_passes(packs: dict[str, Path], name: str) -> None:
    result = judge(packs[name], BY_NAME[name].honest, BubblewrapSandbox())
    assert result.passed, (result.metadata, result.stdout, result.stderr)
    assert result.assurance is Assurance.ISOLATED


@pytest.mark.parametrize("name", BY_NAME)
def test_wrong_workspace_fails(packs: dict[str, Path], name: str) -> None:
    result = judge(packs[name], BY_NAME[name].wrong, BubblewrapSandbox())
    assert (result.passed, result.failure_reason) == (False, FailureReason.TESTS_FAILED)


def cases() -> list[object]:
    """Every cheat on the task it was made for and two more, spread over all tasks."""
    chosen = []
    for number, cheat in enumerate(CHEATS):
        aimed = [task for task in TASKS if set(task.honest) & set(cheat.workspace)]
        spread = [TASKS[(3 * number) % len(TASKS)]]
        chosen += [(task, cheat) for task in {task.name: task for task in [*aimed[:3], *spread]}.values()]
    return [pytest.param(task, cheat, id=f"{task.name}: {cheat.name}") for task, cheat in chosen]


@pytest.mark.parametrize(("task", "cheat"), cases())
def test_no_cheat_passes(packs: dict[str, Path], task: TerminalTask, cheat: Cheat) -> None:
    result = judge(packs[task.name], cheat.workspace, BubblewrapSandbox())
    assert (result.passed, result.failure_reason) == (False, FailureReason.TESTS_FAILED), result.metadata


def test_checker_that_says_so_runs_beside_candidate_code(tmp_path: Path) -> None:
    need_bubblewrap()
    value = {"source": "pytest", "path": "t.py", "timeout_seconds": 90, "assurance": "shared_process"}
    imports = "import sys\nsys.path.insert(0, '/app')\ndef test_it():\n    import subprocess\n    assert subprocess.run(['python3', '-c', 'import sys; sys.path.insert(0, \"/app\"); import lib; print(lib.fib(10))'], capture_output=True).stdout == b'55\\n'\n"
    pack = make_pack(tmp_path / "pack", {"t.py": imports}, {"checker": value})
    result = judge(pack, BY_NAME["function"].honest, BubblewrapSandbox())
    assert result.passed, (result.stdout, result.stderr)
    assert result.assurance is Assurance.SHARED_PROCESS


def test_dangerous_command_is_a_question_of_configuration(tmp_path: Path) -> None:
    need_bubblewrap()
    task = BY_NAME["count"]
    pack = make_pack(tmp_path / "pack", task.tests, {**task.evaluation, "needed_commands": ["mount"]})
    with pytest.raises(ConfigError, match="disallow_dangerous_commands"):
        judge(pack, task.honest, BubblewrapSandbox())
    with pytest.raises(ConfigError, match="deny_commands"):
        judge(pack, task.honest, BubblewrapSandbox(), VerificationPolicy(False, frozenset({"mount"})))


def test_checker_that_breaks_down_before_its_reward_passes_nobody(tmp_path: Path) -> None:
    need_bubblewrap()
    grade = "import json, pathlib\nok = json.loads(pathlib.Path('/app/out.json').read_text())['total'] == 3\npathlib.Path('/logs/verifier/reward.txt').write_text(str(int(ok)))\n"
    tests = {"tests/check.sh": "#!/bin/bash\npython3 /tests/grade.py\nexit 0\n", "tests/grade.py": grade}
    value = {"source": "script", "path": "tests/check.sh", "timeout_seconds": 90}
    more = {"test_files": [{"path": "tests/grade.py"}]}
    careless = make_pack(tmp_path / "careless/pack", tests, {"checker": value, **more})
    strict = make_pack(tmp_path / "strict/pack", tests, {"checker": {**value, "reward": True}, **more})
    breaks = {"out.json": "{"}
    assert judge(careless, breaks, BubblewrapSandbox()).passed  # what `reward` is for
    assert not judge(strict, breaks, BubblewrapSandbox()).passed
    assert judge(strict, {"out.json": '{"total": 3}'}, BubblewrapSandbox()).passed


def test_checker_without_tests_passes_nobody(tmp_path: Path) -> None:
    need_bubblewrap()
    pack = make_pack(
        tmp_path / "pack", {"t.py": "x = 1\n"}, {"checker": {"source": "pytest", "path": "t.py", "timeout_seconds": 90}}
    )
    assert not judge(pack, {"answer.txt": "4217\n"}, BubblewrapSandbox()).passed


def test_candidate_that_hangs_fails_within_its_time(tmp_path: Path) -> None:
    need_bubblewrap()
    checker = "from securebench import worker\ndef test_it():\n    assert worker.run(['python3', 'sum.py'], timeout=3).returncode == 0\n"
    pack = make_pack(
        tmp_path / "pack", {"t.py": checker}, {"checker": {"source": "pytest", "path": "t.py", "timeout_seconds": 90}}
    )
    result = judge(pack, {"sum.py": "while True: pass\n"}, BubblewrapSandbox())
    assert (result.passed, result.metadata["tests"]) == (False, ["failed"])
