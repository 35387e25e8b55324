"""`securebench audit`, its script, and the audit before every run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import need_bubblewrap, question, securebench

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def audited() -> Any:
    need_bubblewrap()
    return securebench("audit", "--json", "--isolation", "bubblewrap")


def test_every_wall_of_the_embedded_backend_stands(audited: Any) -> None:
    assert audited.code == 0, [row for row in audited.json["rows"] if not row["passed"]]
    assert audited.json["passed"]
    assert audited.json["level"] == "bubblewrap"
    groups = {row["group"] for row in audited.json["rows"]}
    assert groups == {"guard", "seal", "backend", "kernel", "limits", "orphans", "surface", "checkout"}
    assert len(audited.json["rows"]) > 300


def test_the_script_is_the_same_audit(audited: Any) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "security_audit.py", "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [row["id"] for row in json.loads(done.stdout)["rows"]]
    assert rows == [row["id"] for row in audited.json["rows"]]


def test_a_level_this_host_does_not_have_is_infrastructure_not_a_pass(tmp_path: Path) -> None:
    done = securebench("audit", "--isolation", "docker", env={"SECUREBENCH_PYTHON_IMAGE": "", "PATH": str(tmp_path)})
    assert done.code == 3
    assert "image" in done.err


def test_a_run_records_its_audit_and_the_next_one_believes_it(bench: Any, tmp_path: Path) -> None:
    cache = {"SECUREBENCH_CACHE": str(tmp_path / "cache")}
    work = bench([question(1)], "echo 42")
    for number in (1, 2):
        output = str(tmp_path / f"out{number}")
        done = securebench("run", "--config", work.config, "--quiet", "--output-dir", output, env=cache)
        assert done.code == 0, done.err
    first, second = (json.loads((tmp_path / f"out{n}" / "candidates.jsonl").read_text()) for n in (1, 2))
    assert first["audit"]["passed"]
    assert first["audit"]["checks"] > 200
    assert first["audit"]["level"] == "bubblewrap"
    assert second["audit"] == first["audit"], "made once, believed twice"
    assert first["assurance"] != "unsafe"


def test_an_unsafe_run_cannot_be_missed_and_says_so_in_every_record(bench: Any) -> None:
    work = bench([question(1), question(2)], "echo 42")
    done = work.run("--unsafe", "--quiet")
    assert done.code == 0, done.err
    assert "UNSAFE" in done.err
    assert [(record["assurance"], record["audit"]) for record in work.records()] == [("unsafe", None)] * 2


def test_an_unsafe_run_is_never_publishable(bench: Any) -> None:
    work = bench([question(1)], "echo 42")
    assert work.run("--unsafe", "--publishable").code == 2


def test_a_run_that_executes_nothing_needs_no_audit(tmp_path: Path, bench: Any) -> None:
    work = bench([question(1)], "echo 42")
    config = json.loads(work.config.read_text())
    config["harness"] = {"type": "constant", "config": {"response": "Answer: 42"}}
    work.config.write_text(json.dumps(config))
    done = work.run()
    assert done.code == 0, done.err
    assert work.records()[0]["audit"] is None
