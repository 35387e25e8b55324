"""`gsm8k`: word problems whose worked answer ends with `#### NUMBER`."""

from __future__ import annotations

from securebench.importers.asking import SOLUTION
from securebench.importers.base import CannotConvert, PackRow, Record, Request
from securebench.importers.final_answers import number_answer
from securebench.importers.record_format import RecordFormat

MARK = "####"


def convert(record: Record, _: Request) -> PackRow:
    """Raises CannotConvert."""
    worked, mark, final = record.text("answer").rpartition(MARK)
    if not mark:
        raise CannotConvert(f"answer has no {MARK}", field="answer")
    private: dict[str, object] = {"accepted_answers": [number_answer(final.strip().removeprefix("$"), "answer")]}
    if worked.strip():
        private[SOLUTION] = worked.strip()
    return PackRow(
        id=record.name_of("id", "task_id") or record.numbered("gsm8k"),
        input={"question": record.text("question"), "answer_format": "number"},
        eval=private,  # type: ignore[arg-type]
    )


FORMAT = RecordFormat(
    name="gsm8k",
    about="GSM8K: word problems with a number as the answer (.jsonl, .parquet)",
    family="short_answer",
    convert=convert,
    shots=8,
)
