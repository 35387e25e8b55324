"""HumanEval and MBPP imported, where their data lies beside the repository: every row, references pass, nobody else.

What is judged here is a fixed sample; all of it takes `SECUREBENCH_ALL_OF_MBPP=1` and minutes."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_public_benchmarks import cheats_for
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.imports import imported, jsonl, rows_of

from securebench.importers.admission import admit

DATA = Path(os.environ.get("SECUREBENCH_TEST_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
EVERYTHING = "SECUREBENCH_ALL_OF_MBPP" in os.environ
SOURCES = {"humaneval": (DATA / "HumanEval.jsonl.gz", 164), "mbpp": (DATA / "mbpp.jsonl", 974)}
KNOWN = {
    "humaneval": {"HumanEval/34", "HumanEval/40", "HumanEval/54"},
    "mbpp": {f"Mbpp/{n}" for n in (37, 203, 339, 404, 667, 674, 698, 816, 847, 890, 899, 951)},
}
"""Rows that admission finds to be worth nothing; docs/benchmarks says why."""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the public data sets are not at {DATA}")


def source_rows(name: str) -> Iterator[dict[str, Any]]:
    data = SOURCES[name][0].read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    yield from map(json.loads, text.splitlines())


@pytest.mark.parametrize("name", SOURCES)
def test_every_row_is_imported_and_its_solution_stays_hidden(tmp_path: Path, name: str) -> None:
    path, count = SOURCES[name]
    pack, report = imported(tmp_path, name, path)
    assert (len(pack), report.rows, report.missing, report.renamed) == (count, count, 0, 0)
    solutions = {"humaneval": "canonical_solution", "mbpp": "code"}[name]
    for row, original in zip(rows_of(pack), source_rows(name), strict=True):
        assert original[solutions].strip() not in json.dumps(row["input"])
        assert set(row["input"]) == {"prompt", "language", "entry_point"}
        assert original[solutions] in (row["eval"].get("canonical_solution"), row["eval"].get("reference_solution"))


@pytest.mark.parametrize("name", SOURCES)
def test_references_pass_and_who_does_nothing_does_not(tmp_path: Path, name: str) -> None:
    need_bubblewrap()
    path, _ = SOURCES[name]
    limit = None if EVERYTHING else 36 if name == "humaneval" else 40
    pack, _ = imported(tmp_path, name, path, limit=limit)
    admission = admit(tmp_path / "pack", mutants=4 if EVERYTHING else 0)
    assert admission.counts["references_passed"] == len(pack)
    assert {row.id for row in admission.rows if not row.admitted} == KNOWN[name] & set(pack.ids)
    assert not any(row.pack_errors or row.host_errors for row in admission.rows)


def test_samples_of_the_benchmark_are_graded_and_cheats_score_nothing(tmp_path: Path) -> None:
    need_bubblewrap()
    path, _ = SOURCES["humaneval"]
    pack, _ = imported(tmp_path, "humaneval", path, limit=8)
    originals = list(source_rows("humaneval"))[:8]
    honest = [{"task_id": row["task_id"], "completion": row["canonical_solution"]} for row in originals]
    cheats = [
        {"task_id": row["task_id"], "solution": source}
        for row in originals[:2]
        for source in cheats_for(row["entry_point"]).values()
    ]
    for name, samples, passed in (("honest", honest, 8), ("cheats", cheats, 0)):
        file = jsonl(tmp_path / f"{name}.jsonl", samples)
        done = securebench("grade", pack.directory, file, "-o", tmp_path / name, "--json", "--ignore-missing")
        assert done.code == 0, done.err
        assert done.json["passed"] == passed
        assert done.json["assurance"] == {"isolated": len(samples)}
    assert len(cheats) == 60
