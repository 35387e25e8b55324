"""`humaneval`: the head of a Python function, to be completed; tests in a function `check(candidate)`.

Also HumanEval+ as JSON lines, whose rows are of the same shape."""

from __future__ import annotations

from securebench.importers.base import PackRow, Record, Request
from securebench.importers.formats.code_rows import IMAGE, IMAGE_SETTING, environment
from securebench.importers.python_tests import inline_tests
from securebench.importers.record_format import RecordFormat


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    entry, image = record.text("entry_point"), request.settings[IMAGE]
    return PackRow(
        id=record.name_of("task_id") or record.numbered("HumanEval"),
        input={
            "prompt": record.text("prompt"),
            "language": "python",
            "entry_point": entry,
        },
        eval={
            "tests": {"source": "inline", "code": inline_tests(record.text("test"), entry, image)},
            "canonical_solution": record.text("canonical_solution"),
        },
        environment=environment(image),
    )


FORMAT = RecordFormat(
    name="humaneval",
    about="HumanEval and HumanEval+: functions to complete, with a check function (.jsonl, .jsonl.gz, .parquet)",
    family="code_completion",
    convert=convert,
    settings={IMAGE: IMAGE_SETTING},
)
