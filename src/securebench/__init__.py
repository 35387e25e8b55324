"""SecureBench runs AI models and agents against benchmark packs and produces scores that can be believed.

Importing this package does nothing; the names below are loaded when they are first used."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's, whose import takes most of the time the spawner of sandboxes needs to start
if TYPE_CHECKING:
    from typing import Any

    from securebench.benchmark_compiler import compile_benchmark_pack
    from securebench.benchmark_pack import load_benchmark_pack
    from securebench.errors import SecureBenchError
    from securebench.grading import Grader, agrade, grade
    from securebench.records.summary import TesterRunSummary
    from securebench.tester_config import load_env_file, load_tester_config
    from securebench.tester_run import run_tester_config
    from securebench.verifiers.base import VerificationResult, Verifier
    from securebench.verifiers.registry import verifier_for_task_type

__all__ = [
    "Grader",
    "SecureBenchError",
    "TesterRunSummary",
    "VerificationResult",
    "Verifier",
    "agrade",
    "compile_benchmark_pack",
    "grade",
    "load_benchmark_pack",
    "load_env_file",
    "load_tester_config",
    "run_tester_config",
    "verifier_for_task_type",
]

_HOME = {
    "Grader": "grading",
    "SecureBenchError": "errors",
    "TesterRunSummary": "records.summary",
    "VerificationResult": "verifiers.base",
    "Verifier": "verifiers.base",
    "agrade": "grading",
    "compile_benchmark_pack": "benchmark_compiler",
    "grade": "grading",
    "load_benchmark_pack": "benchmark_pack",
    "load_env_file": "tester_config",
    "load_tester_config": "tester_config",
    "run_tester_config": "tester_run",
    "verifier_for_task_type": "verifiers.registry",
}


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'securebench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"securebench.{_HOME[name]}"), name)
