"""`repo_patch`: a change to a repository, judged on what really changed and by tests restored last."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from securebench._schema import ClosedModel, FileRef, RelativePath
from securebench.families.base import (
    EVALUATION_INPUTS,
    HIDDEN,
    Argument,
    Argv,
    CandidateKind,
    EvalModel,
    Family,
    InputModel,
    Seconds,
    Text,
)

TestIds = Annotated[tuple[Text, ...], Field(max_length=100_000)]
Patterns = tuple[Text, ...]


class RepoPatchInput(InputModel):
    repo: Text
    base_commit: Text
    instructions: Text
    hints: Text | None = None


class InlinePatch(ClosedModel):
    source: Literal["inline"]
    patch: Text


def _patch_shape(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    source = value.get("source") if isinstance(value, dict) else getattr(value, "source", None)
    return "file" if source is None else "inline"


Patch = Annotated[
    Annotated[Text, Tag("text")] | Annotated[InlinePatch, Tag("inline")] | Annotated[FileRef, Tag("file")],
    Discriminator(_patch_shape),
]


class _Suite(ClosedModel):
    workdir: RelativePath | None = None
    timeout_seconds: Seconds | None = None
    setup_patch: Patch | None = None
    test_patch: Patch | None = None
    files: tuple[FileRef, ...] = ()


class CommandSuite(_Suite):
    """A command that drives the repository from outside."""

    source: Literal["command"]
    command: Argv


class IdSuite(_Suite):
    """A test suite whose expected ids are fixed before it runs; each must be reported exactly once."""

    source: Literal["pytest", "unittest"]
    python: Argument = "python3"  # the interpreter that has what the repository needs
    fail_to_pass: Annotated[TestIds, Field(min_length=1)]
    pass_to_pass: TestIds = ()


class CandidatePolicy(ClosedModel):
    """Which changes count: allowed beyond the default, allowed although sensitive, kept from the pristine tree."""

    allow_paths: Patterns = ()
    allow_sensitive_paths: Patterns = ()
    patch_preserved_paths: Patterns = ()


class RepoPatchEval(EvalModel):
    tests: Annotated[Annotated[CommandSuite | IdSuite, Discriminator("source")], EVALUATION_INPUTS]
    candidate_policy: Annotated[CandidatePolicy | None, EVALUATION_INPUTS] = None
    gold_patch: Annotated[Patch | None, HIDDEN] = None
    mutants: Annotated[tuple[Patch, ...], HIDDEN] = ()  # wrong patches, for `securebench validate`


FAMILY = Family(
    name="repo_patch",
    input_model=RepoPatchInput,
    eval_model=RepoPatchEval,
    candidate=CandidateKind.PATCH,
    verifier="securebench.verifiers.repo_patch:RepoPatchVerifier",
    executes=True,
)
