"""`mbpp`: a function from one sentence, with asserts as tests; the whole data set or its sanitized part.

The name of the function stands in the tests only, and so in what is asked."""

from __future__ import annotations

from securebench.importers.base import CannotConvert, PackRow, Record, Request
from securebench.importers.formats.code_rows import IMAGE, IMAGE_SETTING, environment
from securebench.importers.python_source import asserts_something, defined, first_call, parse, signature
from securebench.importers.python_tests import ASSERT_NOTHING
from securebench.importers.record_format import RecordFormat


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    number = record.name_of("task_id") or str(record.place.line)
    code, tests = record.text("code"), record.texts("test_list")
    if not tests:
        raise CannotConvert("test_list is empty", field="test_list")
    solution, asserts = parse(code), parse("\n".join(tests))
    if solution is None or asserts is None:
        raise CannotConvert(f"{'code' if solution is None else 'test_list'} is no Python")
    entry = first_call(asserts, defined(solution))
    if entry is None:
        raise CannotConvert("no test calls what the solution defines")
    if not asserts_something(asserts):
        raise CannotConvert(ASSERT_NOTHING)
    return PackRow(
        id=f"Mbpp/{number}" if number.isdecimal() else number,  # as EvalPlus and its sample files call them
        input={"prompt": record.text("text", "prompt"), "language": "python", "entry_point": entry},
        eval={
            "tests": {"source": "inline", "code": "\n".join([*_setup(record), *tests]) + "\n"},
            "reference_solution": code,
        },
        environment=environment(request.settings[IMAGE]),
        words={
            "entry_point": entry,
            "signature": signature(solution, entry),
            "example": tests[0],
            "tests": "\n".join(tests),
        },
    )


def _setup(record: Record) -> list[str]:
    imports = record.texts("test_imports") if record.has("test_imports") else []
    setup = record.optional_text("test_setup_code")
    return [*imports, *([setup] if setup else [])]


FORMAT = RecordFormat(
    name="mbpp",
    about="MBPP, all of it or sanitized: functions from a sentence, with asserts (.jsonl, .json, .parquet)",
    family="code_completion",
    convert=convert,
    settings={IMAGE: IMAGE_SETTING},
    words=("entry_point", "signature", "example", "tests"),
)
