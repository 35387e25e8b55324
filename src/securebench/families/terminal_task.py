"""`terminal_task`: work in a file system, judged by a checker that reads the captured workspace as data."""

from __future__ import annotations

from typing import Annotated, Literal

from securebench._schema import FileRef
from securebench.families.base import (
    EVALUATION_INPUTS,
    HIDDEN,
    Argument,
    CandidateKind,
    EvalModel,
    Family,
    FileOrValue,
    InputModel,
    Seconds,
    Text,
)


class TerminalTaskInput(InputModel):
    instructions: Text
    context: Text | None = None


class Checker(FileRef):
    """The pack author's program that looks at the workspace; a file under the eval root."""

    source: Literal["pytest", "script"]
    timeout_seconds: Seconds | None = None
    assurance: Literal["isolated", "shared_process"] = "isolated"  # shared: it executes candidate files itself
    reward: bool = False  # whether it has to write a reward of 1; one that it writes counts in any case


class TerminalTaskEval(EvalModel):
    checker: Annotated[Checker, EVALUATION_INPUTS]
    needed_commands: Annotated[tuple[Argument, ...], EVALUATION_INPUTS] = ()
    run_tests: Annotated[FileRef | None, EVALUATION_INPUTS] = None
    test_files: Annotated[tuple[FileRef, ...], EVALUATION_INPUTS] = ()
    expected_state: Annotated[FileOrValue, HIDDEN] = None
    reference_workspace: Annotated[FileRef | None, HIDDEN] = None  # laid over the initial one, it must pass
    reference_script: Annotated[FileRef | None, HIDDEN] = None  # what it makes of the initial one must pass
    mutants: Annotated[tuple[FileRef, ...], HIDDEN] = ()  # the same, and each must fail


FAMILY = Family(
    name="terminal_task",
    input_model=TerminalTaskInput,
    eval_model=TerminalTaskEval,
    candidate=CandidateKind.WORKSPACE,
    verifier="securebench.verifiers.terminal_task:TerminalTaskVerifier",
    executes=True,
)
