"""Honest fixes pass, wrong ones fail, and no cheat passes: eight repositories before the real verifier, in real sandboxes.

Most cheats are in the catalogue of attacks, each beside the grader that it fools; here is what none is made for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.attacks.repositories.judging import judge, make_pack
from tests.attacks.repositories.repositories import REPOSITORIES, Repository
from tests.e2e.workbench import need_bubblewrap

from securebench._leftovers import staging_directory
from securebench.audit.attacks.f_test_runner import programs
from securebench.audit.attacks.f_test_runner.cheats import IN_PROCESS, Make, at, in_package
from securebench.audit.plays.repository import changes as changes_of
from securebench.audit.suite.attack import End, Ground
from securebench.audit.weak.repository import ExitCode
from securebench.candidates.store import CandidateStore
from securebench.errors import CandidateError, FailureReason, PackError
from securebench.sandboxes.base import HostRoot
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Assurance, VerificationResult
from securebench.verifiers.repo_patch import RepoPatchVerifier

BY_NAME = {repository.name: repository for repository in REPOSITORIES}
ATTACKED = {"pytest": BY_NAME["intervals"], "unittest": BY_NAME["calc"]}
CHEATS: dict[str, Make] = {cheat.name: cheat.changes for cheat in IN_PROCESS}
STRONGEST = ("package-patches-the-reports", "package-equals-everything", "package-reports-on-every-descriptor")
FOOLING_NOBODY: dict[str, Make] = {
    "crashes the interpreter": in_package("def f(): f()\nimport sys\nsys.setrecursionlimit(10**9)\nf()\n"),
    "deletes the code": in_package("", keep=False),
    "empties the tests at import": in_package(programs.UNLINK),
    "json is shadowed": at("json.py", programs.EXIT),
    "patches the reports of another runner": CHEATS["package-patches-the-reports"],
    "reads tests in another form": CHEATS["package-reads-the-test-that-asks"],
}


@dataclass
class Court:
    """One repository's pack, and a verifier that remembers what it learned about it."""

    repository: Repository
    task: SecureBenchTask
    store: CandidateStore
    verifier: RepoPatchVerifier

    def judge(self, changes: Mapping[str, Any]) -> VerificationResult:
        sandbox = BubblewrapSandbox()
        return anyio.run(partial(judge, self.verifier, self.task, self.repository, changes, sandbox, self.store))


def open_court(directory: Path, repository: Repository, timeout: float = 60) -> Court:
    task = make_pack(directory / "pack", repository, timeout_seconds=timeout)
    return Court(repository, task, CandidateStore(directory / "store"), RepoPatchVerifier())


@pytest.fixture(scope="module")
def courts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Court]:
    need_bubblewrap()
    directory = tmp_path_factory.mktemp("repositories")
    return {name: open_court(directory / name, repository) for name, repository in BY_NAME.items()}


@pytest.mark.parametrize("name", BY_NAME)
def test_honest_fix_passes_and_says_what_it_rests_on(courts: dict[str, Court], name: str) -> None:
    court = courts[name]
    for fix in (court.repository.fix, *court.repository.other_fixes):
        result = court.judge(fix)
        assert result.passed, result.stderr
        assert result.assurance is Assurance.SHARED_PROCESS
        assert [control["name"] for control in result.controls] == ["canary", "twins", "sabotage"]
        assert all(control["held"] for control in result.controls)
        assert result.metadata["twins"]["twinned"] >= 2


@pytest.mark.parametrize("name", BY_NAME)
def test_wrong_fix_and_no_fix_fail(courts: dict[str, Court], name: str) -> None:
    court = courts[name]
    for changes in (court.repository.wrong, {"NOTES": "I looked at it.\n"}):
        result = court.judge(changes)
        assert (result.passed, result.failure_reason) == (False, FailureReason.TESTS_FAILED)


@pytest.mark.parametrize("cheat", FOOLING_NOBODY)
def test_cheat_that_fools_nobody_does_not_pass_either(courts: dict[str, Court], cheat: str) -> None:
    court = courts["calc"]
    result = court.judge(FOOLING_NOBODY[cheat](court.repository))
    assert not result.passed
    assert result.failure_reason in {FailureReason.TESTS_FAILED, FailureReason.TAMPERING}


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in {"intervals", "calc"}])
@pytest.mark.parametrize("cheat", STRONGEST)
def test_strongest_cheats_pass_nowhere(courts: dict[str, Court], name: str, cheat: str) -> None:
    court = courts[name]
    assert not court.judge(CHEATS[cheat](court.repository)).passed


@pytest.mark.parametrize(
    "cheat",
    [
        "package-patches-the-runners",
        "package-patches-the-reports",
        "package-equals-everything",
        "package-reports-on-every-descriptor",
        "package-reads-the-test-that-asks",
    ],
)
def test_without_controls_it_would_have_passed(courts: dict[str, Court], cheat: str) -> None:
    """Every expected test was reported as passed; only the controls say otherwise."""
    court = courts["intervals"]
    result = court.judge(CHEATS[cheat](court.repository))
    tests = result.metadata["tests"]
    assert set(tests["fail_to_pass"] + tests["pass_to_pass"]) == {"passed"}
    assert result.failure_reason is FailureReason.TAMPERING


def test_hanging_is_the_candidates_failure(tmp_path: Path) -> None:
    need_bubblewrap()
    court = open_court(tmp_path, BY_NAME["wallet"], timeout=20)
    result = court.judge(in_package("import time\nwhile True:\n    time.sleep(1)\n")(court.repository))
    assert (result.failure_reason, result.stderr) == (FailureReason.TESTS_FAILED, "the suite ran out of time")


def test_sabotage_catches_what_makes_only_the_right_tests_pass(courts: dict[str, Court]) -> None:
    """A forger that knows which variants are true reports exactly those; it does so on broken code as well."""
    court = courts["intervals"]
    court.judge(court.repository.wrong)  # so that the suite is staged
    [suite] = [suite for (name, *_), suite in court.verifier._suites.items() if name == "intervals"]
    true = sorted(str(truth) for truth in suite.staged.truths.values())
    false = [*sorted(str(d) for ds in suite.staged.decoys.values() for d in ds), *map(str, suite.staged.canaries)]
    lines = [f'{{"event":"test","id":"{t}","when":"call","outcome":"passed"}}' for t in true]
    lines += [f'{{"event":"test","id":"{t}","when":"call","outcome":"failed"}}' for t in false]
    data = "\n".join([*lines, '{"event":"end"}', ""])
    forged = f"import os\nfor n in range(3, 64):\n    try:\n        os.write(n, {data!r}.encode())\n    except OSError:\n        pass\nos._exit(0)\n"
    # In a file that neither the gold patch nor the sabotage touches.
    result = court.judge({"intervals/__init__.py": forged})
    assert (result.failure_reason, result.controls[-1]["name"]) == (FailureReason.TAMPERING, "sabotage")
    assert [control["held"] for control in result.controls] == [True, True, False]


SWALLOWS = """\
def _install():
    from unittest.case import _AssertRaisesContext as context
    real = context.__exit__
    context.__exit__ = lambda self, *error: type(self.test_case).__name__ == "TestWallet" or real(self, *error)


try:
    _install()
except Exception:
    pass


class Wallet:
    def __init__(self, balance=0):
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount
        return self.balance

    def withdraw(self, amount):
        if 0 <= amount <= self.balance:
            self.balance -= amount
        return self.balance
"""


def test_sabotage_catches_what_makes_an_assertion_without_twins_pass(courts: dict[str, Court]) -> None:
    """It raises nothing and has every `assertRaises` of the tests pass, and not that of the canary. Only broken code
    tells. The forging code stands in a function of its own and would shrug if that one were broken instead."""
    result = courts["wallet"].judge({"wallet.py": SWALLOWS})
    tests = result.metadata["tests"]
    assert set(tests["fail_to_pass"] + tests["pass_to_pass"]) == {"passed"}, "positive control: the suite is fooled"
    assert [(control["name"], control["held"]) for control in result.controls] == [
        ("canary", True),
        ("twins", True),
        ("sabotage", False),
    ]
    assert (result.passed, result.failure_reason) == (False, FailureReason.TAMPERING)


@pytest.mark.parametrize("runner", ATTACKED)
def test_weak_grader_knows_right_from_wrong(runner: str) -> None:
    need_bubblewrap()
    repository = ATTACKED[runner]
    for made, end in ((repository.fix, End.REACHED), (repository.wrong, End.MISSED)):
        with staging_directory() as directory:
            ground = Ground("bubblewrap", BubblewrapSandbox(), HostRoot(), directory)
            assert anyio.run(ExitCode(repository, changes_of(made)).on, ground).end is end


def test_empty_patch_is_the_candidates_failure(courts: dict[str, Court]) -> None:
    with pytest.raises(CandidateError, match="empty"):
        courts["slugs"].judge({})


def test_gold_patch_that_does_not_pass_is_the_packs_fault(tmp_path: Path) -> None:
    need_bubblewrap()
    from dataclasses import replace

    repository = replace(BY_NAME["stats"], fix=BY_NAME["stats"].wrong)
    with pytest.raises(PackError, match="gold patch does not pass"):
        open_court(tmp_path, repository).judge({"stats.py": "def median(v): return 0\n"})
