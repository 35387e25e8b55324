"""`evalplus`: functions with many more inputs than HumanEval and MBPP have, in both forms in which they are published.

Rows with `test` hold whole tests. Rows with `base_input` and `plus_input` hold inputs only: what is right is what the
canonical solution gives, which the tests ask in their own room. JSON has made lists of tuples and sets in the inputs of
MBPP+ of that form, so they are left out, unless `inputs=as-written` says that lists will do."""

from __future__ import annotations

import ast

from securebench._json import Json
from securebench.importers.base import CannotConvert, PackRow, Record, Request, Setting
from securebench.importers.formats.code_rows import IMAGE, IMAGE_SETTING, environment
from securebench.importers.python_source import defined, first_call, parse
from securebench.importers.python_tests import inline_tests
from securebench.importers.record_format import RecordFormat

_IMPORTS = (ast.Import, ast.ImportFrom)
_ROOT = """\
    return abs(sum(factor * found**power for power, factor in enumerate(given[0]))) <= 1e-4
"""
_EQUAL = """\
    if found == expected:
        return True
    atol = _ATOL or (1e-6 if _floats(expected) else 0)
    return bool(atol) and _close(found, expected, atol)
"""
_OTHER_RULES = {"find_zero": _ROOT}
"""Functions that have more than one right answer."""
_TESTS = """\
import copy as _copy

{imports}


def _make():
{reference}
    return {entry}


_REFERENCE = _make()
_ATOL = {atol!r}
_INPUTS = {inputs!r}


def _floats(value):
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _close(found, expected, atol):
    if isinstance(expected, (list, tuple)):
        same = type(found) is type(expected) and len(found) == len(expected)
        return same and all(_close(one, other, atol) for one, other in zip(found, expected))
    if not isinstance(expected, (int, float)) or not isinstance(found, (int, float)):
        return found == expected
    near = abs(expected) != float("inf") and abs(found - expected) <= atol + 1e-7 * abs(expected)
    return found == expected or near


def _right(found, expected, given):
{rule}

def check(candidate):
    for given in _INPUTS:
        expected = _REFERENCE(*_copy.deepcopy(given))
        found = candidate(*_copy.deepcopy(given))
        assert _right(found, expected, given)
"""


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    image = request.settings[IMAGE]
    solution = "canonical_solution" if record.has("canonical_solution") else "code"
    prompt, given = record.text("prompt"), record.text(solution)
    entry = record.optional_text("entry_point") or _called(record, given)
    if record.has("test"):
        code = inline_tests(record.text("test"), entry, image)
    else:
        code = _from_inputs(record, request, prompt, given, entry)
    kept = "canonical_solution" if solution == "canonical_solution" else "reference_solution"
    return PackRow(
        id=_name(record),
        input={"prompt": prompt, "language": "python", "entry_point": entry},
        eval={"tests": {"source": "inline", "code": code}, kept: given},
        environment=environment(image),
    )


def _name(record: Record) -> str:
    name = record.name_of("task_id") or str(record.place.line)
    return f"Mbpp/{name}" if name.isdecimal() else name


def _called(record: Record, code: str) -> str:
    """The function that the tests of a row without `entry_point` call."""
    solution = parse(code)
    tests = parse("\n".join(record.texts("test_list")) if record.has("test_list") else record.text("test"))
    entry = first_call(tests, defined(solution)) if solution is not None and tests is not None else None
    if entry is None:
        raise CannotConvert("has no entry_point, and no test calls what the solution defines")
    return entry


def _from_inputs(record: Record, request: Request, prompt: str, solution: str, entry: str) -> str:
    if _name(record).startswith("Mbpp") and request.settings["inputs"] != "as-written":
        raise CannotConvert(
            "its inputs have lost their types",
            "JSON has no tuples and sets; import the rows that are published with `test`, or --set inputs=as-written",
        )
    inputs = [*_inputs(record, "base_input"), *_inputs(record, "plus_input")]
    if not inputs:
        raise CannotConvert("has no inputs")
    atol = record.get("atol") or 0
    if not isinstance(atol, int | float) or isinstance(atol, bool) or atol < 0:
        raise CannotConvert("atol is no tolerance", field="atol")
    module = parse(prompt + solution)
    if module is None or entry not in defined(module):
        raise CannotConvert("its prompt and solution are no Python that defines the entry point")
    if any(isinstance(node, ast.Global) for node in ast.walk(module)):
        raise CannotConvert("its solution keeps something in global variables")
    imports = [node for node in module.body if isinstance(node, _IMPORTS)]
    body = [node for node in module.body if node not in imports]
    return _TESTS.format(
        imports="\n".join(map(ast.unparse, imports)),
        reference="\n".join(f"    {line}" for node in body for line in ast.unparse(node).split("\n")),
        entry=entry,
        atol=atol,
        inputs=inputs,
        rule=_OTHER_RULES.get(entry, _EQUAL),
    )


def _inputs(record: Record, name: str) -> list[list[Json]]:
    value = record.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, list) for item in value):
        raise CannotConvert(f"{name} is not a list of lists of arguments", field=name)
    return value


FORMAT = RecordFormat(
    name="evalplus",
    about="HumanEval+ and MBPP+, as rows with `test` or with `base_input` and `plus_input` (.jsonl, .parquet)",
    family="code_completion",
    convert=convert,
    settings={
        IMAGE: IMAGE_SETTING,
        "inputs": Setting(
            "`as-written` takes MBPP+ rows whose inputs JSON has changed", "typed", choices=("typed", "as-written")
        ),
    },
)
