"""A01: nothing private is anywhere an agent can look, nor in anything we write or print.

A random marker stands in every private field of every family. A probe agent reads all it can reach (files,
environment, processes, memory, descriptors, mounts) and reports every marker it sees. The public marker, which
it must see, is the positive control; the catalogue has others (A01)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.workbench import securebench

from securebench.audit.attacks.a_leakage.programs import READ_EVERYTHING
from securebench.audit.plays.agent_pack import Markers, forms, marked_rows, write_marked_pack
from securebench.benchmark_compiler import EVAL_VISIBILITY


def _pack(directory: Path, marks: Markers) -> Path:
    write_marked_pack(directory, marks)
    tester = {
        "schema_version": "0.3",
        "run": {"id": "markers", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": ["/usr/bin/python3", "-c", READ_EVERYTHING]}},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return directory / "tester.yaml"


def test_every_private_field_of_every_family_has_a_marker() -> None:
    rows = {row["family"]: row["eval"] for row in marked_rows(Markers())}
    assert rows.keys() == EVAL_VISIBILITY.keys(), "a new family needs a row in agent_pack"
    for family, fields in rows.items():
        assert set(EVAL_VISIBILITY[family]) - set(fields) <= {"tolerance"}, f"{family}: every field needs a marker"


def test_no_private_value_is_seen_by_an_agent_or_written_anywhere(bench: Any, tmp_path: Path) -> None:
    marks = Markers()
    private, public, config = marks.private, marks.public, _pack(tmp_path, marks)
    done = securebench("run", "--config", config, "--progress", "json", "--show-agent-output", "--json")
    assert done.code == 0, done.err
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    records = [json.loads(line) for line in written["candidates.jsonl"].splitlines()]
    assert len(records) == len(EVAL_VISIBILITY)
    for record in records:
        assert public in record["producer_stdout"], f"the probe is blind on {record['task_id']}"
        assert private not in record["producer_stdout"]
    everything = b"\n".join([*written.values(), done.out.encode(), done.err.encode()])
    for form in (*(form.encode() for form in forms(private)), private.encode("utf-16-le")):
        assert form not in everything


def test_no_private_value_is_printed_by_validate(bench: Any, tmp_path: Path) -> None:
    marks = Markers()
    private, public = marks.private, marks.public
    _pack(tmp_path, marks)
    for arguments in (["validate", tmp_path], ["validate", tmp_path, "--json"]):
        done = securebench(*arguments)
        assert done.code == 1, done.err  # a checker that is no script cannot be satisfied
        assert public not in done.out + done.err
        assert private not in done.out + done.err
