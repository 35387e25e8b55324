"""`terminal_task`: a checker with its own tools reads the captured workspace as data, and asks the worker to execute.

The verdict is `isolated`. A checker that has to execute candidate files itself must be declared `shared_process`: it
then runs beside them, and its word is only tamper evidence."""

from __future__ import annotations

from pathlib import PurePosixPath
from types import MappingProxyType

from anyio import to_thread

from securebench.errors import FailureReason, InfrastructureError
from securebench.families.terminal_task import TerminalTaskEval
from securebench.resources import PackFile, ResourceView, Visibility
from securebench.verifiers._text_answers import typed
from securebench.verifiers.base import Assurance, Status, Verification, VerificationResult
from securebench.verifiers.checkers.bench import TESTS, Bench, hall_usage, tests_place
from securebench.verifiers.checkers.tools import TOOLS
from securebench.verifiers.checkers.verdict import judge_checker
from securebench.verifiers.tree_room import staging


class TerminalTaskVerifier:
    async def verify(self, verification: Verification) -> VerificationResult:
        sandbox, store, task_id = verification.sandbox, verification.store, verification.task_id
        if sandbox is None or store is None:
            raise InfrastructureError("a workspace cannot be verified without a sandbox and a candidate store")
        private = typed(TerminalTaskEval, verification.tests, task_id)
        # Asked first: a command that the configuration does not allow is never the candidate's failure.
        capabilities = verification.policy.capabilities_for(private.needed_commands)
        files = _files(verification.tests)
        tree = await to_thread.run_sync(store.load, verification.candidate.workspace or "")
        async with staging() as place:
            bench = Bench(
                task_id=task_id,
                argv=_argv(private, files),
                files=tuple(files.values()),
                tree=tree,
                store=store,
                environment=verification.environment,
                staging=place,
                assurance=Assurance(private.checker.assurance),
                timeout_seconds=private.checker.timeout_seconds,
                capabilities=capabilities,
                shared=verification.shared,
            )
            seen = await bench.run(sandbox)
        verdict = judge_checker(private.checker.source, seen, private.checker.reward)
        return VerificationResult(
            task_id=task_id,
            status=Status.PASSED if verdict.passed else Status.FAILED,
            passed=verdict.passed,
            score=1.0 if verdict.passed else 0.0,
            assurance=bench.assurance,
            failure_reason=None if verdict.passed else FailureReason.TESTS_FAILED,
            stdout=verdict.stdout,
            stderr=verdict.stderr,
            metadata=MappingProxyType(
                {
                    "rule": "checker",
                    "note": verdict.note,
                    "tests": list(verdict.outcomes),
                    "asked_of_worker": seen.asked,
                    "not_executable_for_the_checker": list(bench.view.blunted[:100]),
                    "only_checker_files_executable": seen.confined,
                    "capabilities": sorted(capabilities),
                }
            ),
            usage=hall_usage(seen),
        )


def _argv(private: TerminalTaskEval, files: dict[str, PackFile]) -> tuple[str, ...]:
    """The checker itself, or the script that runs it."""

    def place(path: str) -> str:
        return f"{TESTS}/{tests_place(files[str(PurePosixPath(path))].mount)}"

    if private.run_tests is not None:
        return ("bash", place(private.run_tests.path))
    if private.checker.source == "pytest":
        return (f"{TOOLS}/bin/pytest", "-q", place(private.checker.path))
    return ("bash", place(private.checker.path))


def _files(view: ResourceView) -> dict[str, PackFile]:
    private = [r for r in view if r.visibility is Visibility.EVALUATION_INPUTS]
    return {str(file.path): file for resource in private for file in resource.files}
