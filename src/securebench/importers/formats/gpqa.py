"""`gpqa`: one right answer and three wrong ones, each in a column of its own, so that somebody has to mix them.

The order depends on the question, the options and the setting `seed`, and on nothing else: the same every time, and
nobody learns from it which option is right."""

from __future__ import annotations

from securebench.importers.asking import SOLUTION
from securebench.importers.base import CannotConvert, PackRow, Record, Request, Setting
from securebench.importers.formats.choices import shuffled
from securebench.importers.record_format import RecordFormat

WRONG = tuple(f"Incorrect Answer {number}" for number in (1, 2, 3))


def convert(record: Record, request: Request) -> PackRow:
    """Raises CannotConvert."""
    question = record.text("Question").strip()
    options = [record.text(name).strip() for name in ("Correct Answer", *WRONG)]
    if len(set(options)) != len(options):
        raise CannotConvert("two of its answers are the same")
    order = shuffled(options, question, request.settings["seed"])
    private: dict[str, object] = {"answer": order.index(0)}
    if worked := record.optional_text("Explanation"):
        private[SOLUTION] = worked
    subject = record.optional_text("Subdomain", "High-level domain")
    return PackRow(
        id=record.name_of("Record ID") or record.numbered("gpqa"),
        input={"question": question, "choices": [options[index] for index in order]},
        eval=private,  # type: ignore[arg-type]
        metadata={"domain": subject} if subject else {},
    )


FORMAT = RecordFormat(
    name="gpqa",
    about="GPQA: a right answer and three wrong ones in columns, mixed by a rule (.csv, .jsonl, .parquet)",
    family="multiple_choice",
    convert=convert,
    settings={"seed": Setting("mixes the options in another way", "0")},
)
