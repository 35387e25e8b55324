"""`livecodebench`: programs that read standard input, and methods of a class `Solution`; public and private tests.

Private tests are text, or packed as they are published: base64, zlib, and then JSON or a pickle of one text. A pickle
is never loaded: `pickled_text` reads the one shape that holds nothing but a text; a row with any other is left out.
There are no reference solutions, so nothing shows that a row can be solved."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

from securebench import _json
from securebench._json import Json
from securebench._schema import found
from securebench.errors import ConfigError
from securebench.importers.base import CannotConvert, PackRow, Record, Request, Setting
from securebench.importers.formats.code_rows import IMAGE, IMAGE_SETTING, environment
from securebench.importers.pickled import NotOneText, pickled_text
from securebench.importers.record_format import Convert, RecordFormat

MAX_TESTS = 256 * 2**20
RUN = ["python3", "candidate.py"]
_STDIN, _FUNCTION = "stdin", "functional"


def prepare(request: Request) -> Convert:
    """Raises ConfigError for seconds that are none."""
    _seconds(request)
    return convert


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    private = _cases(record, "private_test_cases")
    if not private:
        raise CannotConvert("has no private tests", "what its public ones expect stands in the question")
    tests = [*_cases(record, "public_test_cases"), *private]
    kinds = {str(test.get("testtype")) for test in tests}
    if kinds not in ({_STDIN}, {_FUNCTION}):
        raise CannotConvert(f"its tests are neither all {_STDIN} nor all {_FUNCTION}", f"{len(tests)} tests")
    public: dict[str, Json] = {"prompt": record.text("question_content"), "language": "python"}
    if starter := record.optional_text("starter_code"):
        public["starter_code"] = starter
    seconds = _seconds(request)
    made: dict[str, Json]
    if kinds == {_STDIN}:
        cases: list[Json] = [{"stdin": _text(test, "input"), "stdout": _text(test, "output")} for test in tests]
        made = {"source": "io", "run": list(RUN), "compare": "tokens", "cases": cases, **seconds}
    else:
        public["entry_point"] = f"Solution.{_function(record)}"
        made = {"source": "cases", "cases": [_call(test) for test in tests]}
    known = ("platform", "difficulty", "contest_id", "contest_date")
    tags: list[Json] = [value for name in ("platform", "difficulty") if (value := record.optional_text(name))]
    return PackRow(
        id=record.name_of("question_id") or record.numbered("livecodebench"),
        input=public,
        eval={"tests": made},
        environment=environment(request.settings[IMAGE]),
        metadata={name: str(value) for name in known if (value := record.get(name)) is not None} | {"tags": tags},
        words={"reads": _READS[kinds == {_STDIN}]},
    )


_READS = {
    True: "Write a program that reads from standard input and prints the answer to standard output.",
    False: "Complete the class `Solution`.",
}


def _cases(record: Record, name: str) -> list[dict[str, Any]]:
    value = record.get(name)
    if isinstance(value, str):
        value = _parsed(value, name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise CannotConvert(f"{name} is not a list of tests", f"found {found(value)}", name)
    return value


def _parsed(text: str, name: str) -> Any:
    data: str | bytes = text
    if not text.lstrip().startswith("["):
        data = _unpacked(text, name)
    try:
        return _json.loads(data) if data else None
    except _json.JsonError as error:
        raise CannotConvert(f"{name} is no JSON", str(error), name) from None


def _unpacked(text: str, name: str) -> str | bytes:
    """Base64, then zlib, then JSON or a pickled text."""
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, MAX_TESTS)
    except (binascii.Error, ValueError, zlib.error):
        raise CannotConvert(f"{name} is neither JSON nor packed", "expected base64 of zlib data", name) from None
    if not unpacker.eof:
        raise CannotConvert(f"{name} is cut off, or larger than {MAX_TESTS} bytes", field=name)
    if not data.startswith(b"\x80"):
        return data
    try:
        return pickled_text(data)
    except NotOneText as error:
        raise CannotConvert(f"{name} is pickled, and pickles are not loaded", str(error), name) from None


def _text(test: dict[str, Any], name: str) -> str:
    value = test.get(name)
    if not isinstance(value, str):
        raise CannotConvert(f"a test has no {name}")
    return value


def _call(test: dict[str, Any]) -> Json:
    """One line of JSON for each argument, and the result."""
    try:
        args = [_json.loads(line) for line in _text(test, "input").split("\n") if line.strip()]
        return {"args": args, "expected": _json.loads(_text(test, "output"))}
    except _json.JsonError as error:
        raise CannotConvert("a test's input or output is no JSON", str(error)) from None


def _function(record: Record) -> str:
    value = record.get("metadata")
    if isinstance(value, str):
        value = _parsed_metadata(value)
    name = value.get("func_name") if isinstance(value, dict) else None
    if not isinstance(name, str) or not name.isidentifier():
        raise CannotConvert("metadata names no function", field="metadata")
    return name


def _parsed_metadata(text: str) -> Any:
    try:
        return _json.loads(text)
    except _json.JsonError:
        return None


def _seconds(request: Request) -> dict[str, Json]:
    text = request.settings["seconds"]
    if not text:
        return {}
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ConfigError(f"seconds is a number of seconds, not {text!r}")
    return {"timeout_seconds": seconds}


FORMAT = RecordFormat(
    name="livecodebench",
    about="LiveCodeBench and its like: programs judged on what they print, methods of Solution (.jsonl, .parquet)",
    family="code_completion",
    prepare=prepare,
    settings={IMAGE: IMAGE_SETTING, "seconds": Setting("for one run of a program; default: 10")},
    words=("reads",),
)
