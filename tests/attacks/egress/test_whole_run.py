"""A whole run in the small internet: a task that may reach one host reaches it, and every decision is evidence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.egress.lab import Lab, in_lab
from tests.docker.engine import IMAGE, docker
from tests.e2e.workbench import Workbench, need_bubblewrap, question

from securebench.candidates.store import CandidateStore
from securebench.harnesses.factory import build_harness_producer
from securebench.harnesses.sandboxed import SandboxedProducer
from securebench.sandboxes.select import make_sandbox
from securebench.tester_config import parse_tester_config

FETCH = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cadata=sys.argv[1])
for url in sys.argv[2:]:
    try:
        with urllib.request.urlopen(url, context=context, timeout=60) as reply:
            print(reply.status, file=sys.stderr)
    except (urllib.error.URLError, OSError) as error:
        print(error, file=sys.stderr)
print(42)
"""
URLS = ["https://allowed.lab.test/echo", "https://other.lab.test/", "http://10.0.0.5/", "http://private.lab.test/"]


def run(directory: Path, lab: Lab, rows: list[dict[str, Any]], **sections: Any) -> Workbench:
    need_bubblewrap()
    (directory / "manifest.yaml").write_text("id: net\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = ["/usr/bin/python3", "-I", "-c", FETCH, lab.ca.read_text(), *URLS]
    # urllib reads the proxy from the environment, which -I leaves alone
    tester = {
        "schema_version": "0.3",
        "run": {"id": "net", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": argv}},
        **sections,
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    bench = Workbench(directory)
    done = bench.run()
    assert done.code == 0, done.err
    return bench


def network(*domains: str) -> dict[str, Any]:
    return {"environment": {"network": {"allowed_domains": list(domains)}}}


@in_lab
def test_a_task_reaches_what_it_names_and_nothing_else(lab: Lab, tmp_path: Path) -> None:
    rows = [question(1, **network("allowed.lab.test", "private.lab.test")), question(2)]
    records = {record["task_id"]: record for record in run(tmp_path, lab, rows).records()}
    assert {record["verification_status"] for record in records.values()} == {"passed"}
    first = records["t1"]["producer_stderr"].splitlines()
    assert first[0] == "200"
    assert all("403" in line for line in first[1:]), first
    assert "200" not in records["t2"]["producer_stderr"], "the other task has no way out at all"
    store = CandidateStore(tmp_path / "out/candidates")
    egress = json.loads(store.read(records["t1"]["evidence"]["egress.json"]["digest"], 1 << 20))["egress"]
    refused = {(entry["host"], entry["reason"]) for entry in egress["decisions"] if entry["kind"] == "refused"}
    assert refused == {
        ("other.lab.test", "not_allowed"),
        ("10.0.0.5", "bad_name"),
        ("private.lab.test", "private_address"),
    }
    assert egress["counts"]["allowed"]
    assert "evidence" in records["t2"]
    assert records["t2"]["evidence"] == {}


@in_lab
def test_the_same_holds_in_a_container(lab: Lab, tmp_path: Path) -> None:
    if docker("image", "inspect", IMAGE).returncode:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)("Docker and its image: scripts/ci-docker")
    environment = {"image": IMAGE, "network": {"allowed_domains": ["allowed.lab.test", "private.lab.test"]}}
    before = len(lab.queries())
    work = run(tmp_path, lab, [question(1, environment=environment)], sandbox={"backend": "docker"})
    (record,) = work.records()
    said = record["producer_stderr"].splitlines()
    assert said[0] == "200", said
    assert all("403" in line for line in said[1:]), said
    assert record["producer_metadata"]["sandbox"] == "docker"
    assert set(lab.queries()[before:]) <= {"allowed.lab.test", "private.lab.test"}, (
        "Docker's resolver forwarded nothing"
    )


def test_the_private_domains_of_a_tester_file_are_those_of_the_proxy() -> None:
    """That such a domain is reached then is tested with the proxy alone."""
    tester = {
        "schema_version": "0.3",
        "run": {"id": "net", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": "true", "allowed_domains": ["private.lab.test"]}},
        "egress": {"private_domains": ["private.lab.test"]},
    }
    producer = build_harness_producer(parse_tester_config(tester), make_sandbox("bubblewrap"))
    assert isinstance(producer, SandboxedProducer)
    assert producer.outlets.domains == producer.outlets.private_domains == {"private.lab.test"}
