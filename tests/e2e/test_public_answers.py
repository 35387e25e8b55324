"""The reference solutions of HumanEval, in every shape that models reply in, come out as the programs they are."""

from __future__ import annotations

import ast
import gzip
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from securebench.answers.python_join import Joined
from securebench.harnesses.code_answer import code_answer

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the public data sets are not at {DATA}")


def rows() -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def public(row: dict[str, Any]) -> dict[str, Any]:
    return {"prompt": row["prompt"], "language": "python", "entry_point": row["entry_point"]}


@pytest.mark.parametrize("wrap", ["{}", "So:\n\n```python\n{}\n```\n"])
def test_bodies_and_whole_programs(wrap: str) -> None:
    seen = 0
    for row in rows():
        body = row["canonical_solution"]
        program = ast.dump(ast.parse(row["prompt"] + body))
        shapes = [body, textwrap.dedent(body), body.strip(), textwrap.indent(body, "    "), row["prompt"] + body]
        for answer in shapes:
            got = code_answer(wrap.format(answer), public(row))
            assert ast.dump(ast.parse(got.text)) == program, (row["task_id"], answer)
            seen += 1
    assert seen == 164 * 5


def test_functions_alone_get_the_helpers_of_the_prompt() -> None:
    prefixed = 0
    for row in rows():
        module = ast.parse(row["prompt"] + row["canonical_solution"])
        (function,) = [node for node in module.body if getattr(node, "name", None) == row["entry_point"]]
        got = code_answer(ast.unparse(function), public(row))
        others = len(module.body) > 1
        assert (got.joined is Joined.AFTER_PREAMBLE) is others, row["task_id"]
        assert len(ast.parse(got.text).body) == len(module.body)
        prefixed += others
    assert prefixed > 20
