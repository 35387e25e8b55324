"""Admission: rows that are worth nothing are found, in real rooms, and the good ones stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import need_bubblewrap
from tests.imports import jsonl
from tests.packs import write_pack

from securebench.errors import ConfigError
from securebench.families.registry import FAMILIES
from securebench.importers.admission import admit, right_answer, without_failing
from securebench.importers.base import Request
from securebench.importers.formats import gsm8k, humaneval
from securebench.importers.importing import Import
from securebench.importers.registry import check_settings
from securebench.importers.sources import open_source
from securebench.pack_schema import row_schema


def code(name: str, test: str, solution: str = "    return 2 * x\n", **changes: Any) -> dict[str, Any]:
    prompt = 'def twice(x):\n    """Twice x."""\n'
    row = {"task_id": name, "prompt": prompt, "entry_point": "twice", "canonical_solution": solution, "test": test}
    return row | changes


GOOD = code("good", "def check(candidate):\n    assert candidate(3) == 6\n    assert candidate(-1) == -2\n")
ROWS = [
    GOOD,
    code("reference", "def check(candidate):\n    assert candidate(3) == 7\n"),
    code("constant", "def check(candidate):\n    assert candidate(0) == 0\n"),
    code(
        "nothing", "def check(candidate):\n    try:\n        candidate(1)\n    except TypeError:\n        assert True\n"
    ),
    code("library", "import no_such_library\n\ndef check(candidate):\n    assert candidate(1) == 2\n"),
    code("weak", "def check(candidate):\n    assert candidate(3) > 5\n", "    return x + x if x > 0 else 2 * x\n"),
]


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    need_bubblewrap()
    tmp_path = tmp_path_factory.mktemp("admission")
    source = jsonl(tmp_path / "rows.jsonl", ROWS)
    (first := tmp_path / "first").mkdir()
    with open_source(str(source)) as opened:
        request = Request(settings=check_settings(humaneval.FORMAT, {}))
        job = Import(humaneval.FORMAT, opened, request)
        job.write(first)
        admission = admit(first, mutants=3)
        pack, report, again = without_failing(job, first, admission)
    return {"admission": admission, "pack": pack, "report": report, "again": again, "directory": first}


def test_every_row_is_judged_by_what_came_out(admitted: dict[str, Any]) -> None:
    rows = {row.id: row for row in admitted["admission"].rows}
    assert [name for name, row in rows.items() if row.admitted] == ["good", "weak"]
    assert rows["good"].reference == "passed"
    assert (rows["good"].mutants, rows["good"].noticed) == (3, 3)
    assert rows["reference"].reference == "failed"
    assert "always returns 0" in rows["constant"].without_work
    assert "returns its first argument" in rows["constant"].without_work
    assert rows["library"].reference == "error"
    (told,) = rows["library"].pack_errors
    assert "no_such_library" in told
    assert told.startswith("base, canonical_solution: ")
    assert not any(row.host_errors for row in rows.values())


def test_weak_tests_show_in_mutants(admitted: dict[str, Any]) -> None:
    rows = {row.id: row for row in admitted["admission"].rows}
    assert rows["weak"].noticed < rows["weak"].mutants
    counts = admitted["admission"].counts
    assert counts["mutants_noticed"] < counts["mutants"]
    assert (counts["rows"], counts["admitted"]) == (6, 2)


def test_pack_is_made_again_without_rows_that_failed(admitted: dict[str, Any]) -> None:
    pack, again = admitted["pack"], admitted["again"]
    assert pack.ids == ("good", "weak")
    assert pack.manifest.source.excluded == 4
    assert admitted["report"].excluded == 4
    assert again.digest == pack.digest
    assert again.failing == []
    assert [row.id for row in again.rows if row.excluded] == ["reference", "constant", "nothing", "library"]
    assert again.contradiction() is None
    assert sorted(entry.name for entry in admitted["directory"].iterdir()) == ["manifest.yaml", "tasks.jsonl"]


TEXT = [
    {
        "id": "choice",
        "family": "multiple_choice",
        "input": {"question": "Which?", "choices": ["a", "b", "c"], "multi_select": True},
        "eval": {"answer": ["C", "A"]},
    },
    {
        "id": "set",
        "family": "short_answer",
        "input": {"question": "Which?", "answer_format": "set"},
        "eval": {"accepted_answers": ["one, two", "three"]},
    },
    {
        "id": "number",
        "family": "short_answer",
        "input": {"question": "How many?"},
        "eval": {"accepted_answers": [1234567]},
    },
    {
        "id": "prose",
        "family": "free_response",
        "input": {"prompt": "Where?"},
        "eval": {"rubric": {"type": "contains_any", "accepted_answers": ["in Oslo"]}},
    },
    {
        "id": "judged",
        "family": "free_response",
        "input": {"prompt": "Why?"},
        "eval": {"rubric": {"type": "judge", "criteria": "x", "controls": [{"response": "no"}]}},
    },
    {
        "id": "echo",
        "family": "short_answer",
        "input": {"question": "banana"},
        "eval": {"accepted_answers": ["banana"]},
    },
]


def test_pack_of_which_nothing_is_left_is_told_with_why(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "rows.jsonl", [{"question": f"{n}?", "answer": f"#### {n}"} for n in range(100, 112)])
    (target := tmp_path / "pack").mkdir()
    with open_source(str(source)) as opened:
        job = Import(gsm8k.FORMAT, opened)
        job.write(target)
        sound = admit(target)
        rows = tuple(row.model_copy(update={"admitted": False, "without_work": ("echo",)}) for row in sound.rows)
        with pytest.raises(ConfigError) as caught:
            without_failing(job, target, sound.model_copy(update={"rows": rows}))
    first, *shown, more = str(caught.value).splitlines()
    assert first == "rows.jsonl: no row is left: none of 12 was admitted:"
    assert shown == [f"task gsm8k/{n}: passes without work: echo" for n in range(1, 11)]
    assert more == "… and 2 more"


def test_text_rows_need_no_sandbox(tmp_path: Path) -> None:
    admission = admit(write_pack(tmp_path, TEXT))
    rows = {row.id: row for row in admission.rows}
    assert {name: row.reference for name, row in rows.items()} == {
        **dict.fromkeys(("choice", "set", "number", "prose", "echo"), "passed"),
        "judged": "not_judged",
    }
    assert [name for name, row in rows.items() if not row.admitted] == ["echo"]
    assert any("echo" in control for control in rows["echo"].without_work)
    assert admission.sandbox is None
    assert admission.counts["without_reference"] == 1


@pytest.mark.parametrize("row", TEXT[:4], ids=lambda row: row["id"])
def test_right_answer_of_a_key(row: dict[str, Any]) -> None:
    typed: Any = row_schema(FAMILIES[row["family"]]).validate(row, "x", lambda _: 1)
    wanted = {"choice": "A, C", "set": "Answer: one, two; three", "number": "Answer: 1234567", "prose": "in Oslo"}
    assert right_answer(typed) == wanted[row["id"]]
