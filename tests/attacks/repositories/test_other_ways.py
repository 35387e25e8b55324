"""Fixes that go another way than the gold patch, and tables of parameters, where forgers could hide."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.attacks.repositories.judging import judge, make_pack
from tests.attacks.repositories.repositories import Repository
from tests.e2e.workbench import need_bubblewrap

from securebench.audit.attacks.f_test_runner.programs import AGREEABLE, PATCH_REPORTS
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.candidates.store import CandidateStore
from securebench.errors import FailureReason, PackError
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.verifiers.base import VerificationResult
from securebench.verifiers.repo_patch import RepoPatchVerifier

CODE = "def helper(x):\n    return x\n\n\ndef twice(x):\n    return helper(x)\n"
TABLE = (
    "import pytest\nfrom double import twice\n\n\n"
    '@pytest.mark.parametrize("given, wanted", [(1, 2), (2, 4), ("a", "aa")])\n'
    "def test_twice(given, wanted):\n    assert twice(given) == wanted\n\n\n"
    "def test_nothing():\n    assert twice(0) == 0\n"
)
IDS = tuple(f"test_double.py::test_twice[{name}]" for name in ("1-2", "2-4", "a-aa"))
REPOSITORY = Repository(
    name="double",
    runner="pytest",
    package="double.py",
    files={"double.py": CODE},
    tests={"test_double.py": TABLE},
    fail_to_pass=IDS,
    pass_to_pass=("test_double.py::test_nothing",),
    fix={"double.py": CODE.replace("return x", "return x + x")},
    wrong={"double.py": CODE.replace("return x", "return 2")},
)
OWN_WAY = {"double.py": CODE.replace("return helper(x)", "return x * 2")}
ONLY_WHERE_ASKED = {"double.py": AGREEABLE + CODE.replace("return helper(x)", "return _Yes() if x == 'a' else x * 2")}


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> partial[VerificationResult]:
    need_bubblewrap()
    directory: Path = tmp_path_factory.mktemp("double")
    task = make_pack(directory / "pack", replace(REPOSITORY), timeout_seconds=60)
    store, verifier = CandidateStore(directory / "store"), RepoPatchVerifier()

    def ask(changes: dict[str, str]) -> VerificationResult:
        return anyio.run(partial(judge, verifier, task, REPOSITORY, changes, BubblewrapSandbox(), store))

    return partial(ask)


def test_fix_in_the_gold_patchs_place_passes(court: partial[VerificationResult]) -> None:
    result = court(dict(REPOSITORY.fix))
    assert result.passed, (result.stderr, result.controls)
    assert [control["held"] for control in result.controls] == [True, True, True]
    assert result.metadata["twins"]["chance_of_guessing"] == 0.125


def test_fix_that_leaves_the_gold_patchs_function_unused_cannot_be_told_from_a_forger(
    court: partial[VerificationResult],
) -> None:
    """The price of sabotage, and documented: it passes on broken code, and that is all anybody outside can see."""
    result = court(OWN_WAY)
    assert (result.passed, result.failure_reason) == (False, FailureReason.TAMPERING)
    assert [control["held"] for control in result.controls] == [True, True, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"double.py": AGREEABLE + "def twice(x):\n    return _Yes()\n"},
        {"double.py": PATCH_REPORTS + CODE},
        ONLY_WHERE_ASKED,
    ],
    ids=["everything equals everything", "reports are patched", "one row equals everything"],
)
def test_table_of_parameters_is_no_hiding_place(court: partial[VerificationResult], changes: dict[str, str]) -> None:
    result = court(changes)
    assert set(result.metadata["tests"]["fail_to_pass"]) == {"passed"}  # without the twins it would have passed
    assert result.failure_reason is FailureReason.TAMPERING


def test_wrong_fix_is_only_wrong(court: partial[VerificationResult]) -> None:
    assert court(dict(REPOSITORY.wrong)).failure_reason is FailureReason.TESTS_FAILED


def test_repository_that_does_not_fit_is_the_packs_fault(tmp_path: Path) -> None:
    """The same room that is the candidate's failure when its own files fill it."""
    need_bubblewrap()
    pack = tmp_path / "pack"
    make_pack(pack, REPOSITORY)
    row = json.loads((pack / "tasks.jsonl").read_text())
    (pack / "tasks.jsonl").write_text(json.dumps({**row, "environment": {"resources": {"disk": "4k"}}}) + "\n")
    [task] = compile_benchmark_pack(load_benchmark_pack(pack / "manifest.yaml", pack / "tasks.jsonl"))
    store = CandidateStore(tmp_path / "store")
    with pytest.raises(PackError, match="where they run"):
        anyio.run(partial(judge, RepoPatchVerifier(), task, REPOSITORY, OWN_WAY, BubblewrapSandbox(), store))
