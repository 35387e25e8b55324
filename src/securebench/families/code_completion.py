"""`code_completion`: a function or program; tests run elsewhere and call the candidate across a byte pipe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag, model_validator

from securebench._schema import ClosedModel, FileRef
from securebench._yaml import Loc
from securebench.families.base import (
    EVALUATION_INPUTS,
    HIDDEN,
    Argv,
    CandidateKind,
    EvalModel,
    Family,
    InputModel,
    Seconds,
    Text,
    TextOrFile,
)
from securebench.families.generated_cases import GeneratedCases

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$", max_length=200)]


class CodeCompletionInput(InputModel):
    prompt: Text
    language: Text
    starter_code: str | None = None
    entry_point: Identifier | None = None


class InlineTests(ClosedModel):
    """Test code in the row: `check(candidate)`, `test_*` functions, unittest classes, or plain asserts."""

    source: Literal["inline"]
    code: Text
    timeout_seconds: Seconds | None = None


class Case(ClosedModel):
    """One call and what must come of it: a value, an exception by name, or a predicate.

    A predicate is a Python expression over `result`, `args`, `kwargs` and `math`; it must be exactly True."""

    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    expected: JsonValue = None
    raises: Text | None = None
    predicate: Text | None = None
    tolerance: Annotated[float, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> Case:
        given = self.model_fields_set & {"expected", "raises", "predicate"}
        if len(given) != 1:
            raise ValueError("a case needs exactly one of 'expected', 'raises' and 'predicate'")
        return self


class CaseTests(ClosedModel):
    """Declarative calls of the entry point."""

    source: Literal["cases"]
    cases: tuple[Case, ...] = ()
    generate: GeneratedCases | None = None  # further calls, answered by the reference solution
    timeout_seconds: Seconds | None = None

    @model_validator(mode="after")
    def _something(self) -> CaseTests:
        if not self.cases and self.generate is None:
            raise ValueError("needs 'cases', 'generate', or both")
        return self


class IoCase(ClosedModel):
    """One run of the program: what it reads and what it must print."""

    stdin: str = ""
    stdout: str


class IoTests(ClosedModel):
    """A program in any language, judged on what it prints."""

    source: Literal["io"]
    compile: Argv | None = None
    run: Argv
    compare: Literal["exact", "tokens", "float"] = "exact"
    tolerance: Annotated[float, Field(ge=0)] | None = None
    checker: FileRef | None = None
    cases: Annotated[tuple[IoCase, ...], Field(min_length=1)]
    timeout_seconds: Seconds | None = None


def _tests_shape(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("source", "file"))
    return str(getattr(value, "source", "file"))


Tests = Annotated[
    Annotated[InlineTests, Tag("inline")]
    | Annotated[CaseTests, Tag("cases")]
    | Annotated[IoTests, Tag("io")]
    | Annotated[FileRef, Tag("file")],
    Discriminator(_tests_shape),
]


def is_python(language: str) -> bool:
    return language.strip().lower() in {"python", "python3", "py"}


class CodeCompletionEval(EvalModel):
    tests: Annotated[Tests, EVALUATION_INPUTS]
    reference_solution: Annotated[TextOrFile | None, HIDDEN] = None
    canonical_solution: Annotated[TextOrFile | None, HIDDEN] = None
    mutants: Annotated[tuple[TextOrFile, ...], HIDDEN] = ()  # wrong candidates, for `securebench validate`


def _check(public: CodeCompletionInput, private: CodeCompletionEval) -> Iterable[tuple[Loc, str]]:
    tests = private.tests
    if isinstance(tests, IoTests):
        if tests.tolerance is not None and tests.compare != "float":
            yield ("eval", "tests", "tolerance"), "has a meaning with compare: float only"
        return
    if not is_python(public.language):
        yield ("eval", "tests"), "tests that call functions need language: python; other languages use source: io"
    if isinstance(tests, CaseTests) and public.entry_point is None:
        yield ("input", "entry_point"), "is needed by tests of source: cases, which call it"
    answers = private.reference_solution or private.canonical_solution
    if isinstance(tests, CaseTests) and tests.generate is not None and answers is None:
        yield ("eval", "tests", "generate"), "needs eval.reference_solution, which knows the answers"


FAMILY = Family(
    name="code_completion",
    input_model=CodeCompletionInput,
    eval_model=CodeCompletionEval,
    candidate=CandidateKind.CODE,
    executes=True,
    verifier="securebench.verifiers.code_completion:CodeCompletionVerifier",
    check=_check,
)
