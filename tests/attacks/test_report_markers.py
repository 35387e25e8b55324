"""No private value of a task comes to light in what shows a run: pages with their data, Markdown, the terminal, JSON,
the viewer. The markers of A01 stand in every private field; the public one, which must be seen, is the control."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.viewing import viewer

from securebench.audit.plays.agent_pack import Markers, forms, write_marked_pack
from securebench.reports.html.blocks import unpack
from securebench.reports.view.library import run_id


@pytest.mark.parametrize("harness", ["echo", "null"])
def test_no_private_value_is_shown_anywhere(tmp_path: Path, harness: str) -> None:
    need_bubblewrap()
    marks = Markers()
    write_marked_pack(tmp_path, marks)
    tester = {
        "schema_version": "0.3",
        "run": {"id": "markers", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": harness, "config": {}},
    }
    (tmp_path / "tester.yaml").write_text(json.dumps(tester))
    assert securebench("run", "--config", tmp_path / "tester.yaml", "--json").code == 0
    run = tmp_path / "out"
    shown = [securebench("report", run, "--format", form).out for form in ("html", "markdown", "github")]
    shown += [securebench("report", run, "--json").out, securebench("show", run, "--all").out]
    tasks = json.loads((run / "plan.json").read_bytes())["tasks"]
    shown += [securebench("show", run, task["id"], "--all").out for task in tasks]
    shown += [securebench("show", run, task["id"], "--json").out for task in tasks]
    with viewer(tmp_path) as opened:
        shown += [
            opened.ask(way).body.decode() for way in ("", f"run/{run_id('out')}/report", f"run/{run_id('out')}/live")
        ]
    shown += [securebench("export", run, "--format", form).out for form in ("inspect", "jsonl", "junit", "sarif")]
    assert securebench("export", run, "--format", "harbor", "-o", tmp_path / "job").code == 0
    shown += [path.read_text() for path in (tmp_path / "job").rglob("*") if path.is_file()]
    shown += [str(unpack(text)) for text in re.findall(r'octet-stream" id="[^"]*">([^<]*)<', shown[0])]
    everything = "\n".join(shown)
    assert marks.public in everything
    assert [form for form in forms(marks.private) if form in everything] == []
