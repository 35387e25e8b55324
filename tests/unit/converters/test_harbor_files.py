"""The pieces of a task directory: TOML, names, scripts, and the stand-in for the worker."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securebench.converters.harbor.converting import directory_name
from securebench.converters.harbor.scripts import WORKER, reward_script, worker_files
from securebench.converters.harbor.task_toml import task_toml
from securebench.converters.harbor.toml_text import NoToml, toml_document, toml_value
from securebench.environment import TaskEnvironment

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=4
)
TABLE = st.dictionaries(TEXT, VALUES, min_size=1, max_size=4)


@settings(max_examples=50)
@given(TABLE, st.dictionaries(TEXT, TABLE, max_size=3))
def test_what_was_written_is_read_again(values: dict[str, Any], tables: dict[str, dict[str, Any]]) -> None:
    values = {name: value for name, value in values.items() if name not in tables}
    assert tomllib.loads(toml_document(values, tables)) == values | tables


@pytest.mark.parametrize("value", [None, [1, None], {"a": {"b": None}}, float("nan"), float("inf"), 2**63, b"x"])
def test_what_toml_cannot_hold_is_said(value: Any) -> None:
    with pytest.raises(NoToml):
        toml_value(value)


def test_task_without_limits_says_only_that_there_is_no_network() -> None:
    text, notes = task_toml(TaskEnvironment(), {}, test_seconds=300, whole_image=None)
    assert tomllib.loads(text) == {
        "schema_version": "1.4",
        "verifier": {"timeout_sec": 300.0},
        "environment": {"network_mode": "no-network"},
    }
    assert notes == []


@pytest.mark.parametrize(
    ("name", "kept"), [("acme/sum", True), ("acme", False), ("a/../b", False), ("a/b/c", False), (7, False)]
)
def test_name_in_harbor_is_kept_where_it_is_one(name: Any, kept: bool) -> None:
    text, _ = task_toml(TaskEnvironment(), {"harbor_name": name}, test_seconds=1, whole_image=None)
    assert tomllib.loads(text).get("task") == ({"name": name} if kept else None)
    assert "metadata" not in tomllib.loads(text)


@pytest.mark.parametrize("name", ["../x", ".", "a/b", "", "é", "x" * 101, "a b", "-rf"])
def test_id_that_is_no_name_of_a_directory_becomes_one(name: str) -> None:
    made = directory_name(name)
    assert made != name
    assert directory_name(made) == made
    assert "/" not in made


def test_different_ids_have_different_directories() -> None:
    assert len({directory_name(name) for name in ("a b", "a/b", "a-b", "a  b")}) == 4


def lay(directory: Path, files: dict[str, str]) -> Path:
    for place, text in files.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        (directory / place).write_text(text)
    return directory


ASK = """
import json
from securebench import worker
done = worker.run(["sh", "-c", "cat; pwd; exit 3"], stdin="in ")
late = worker.run(["sleep", "9"], timeout=0.2)
gone = worker.run(["no-such-program"])
value = worker.call("lib.py", "pair", 1, other=[2])
try:
    worker.call("lib.py", "bad")
except worker.WorkerError as error:
    told = str(error)
[page] = worker.http(["python3", "-u", "server.py", "{port}"], [("POST", "/x", b"\\xff", {{"A": "b"}})], port={port}, ready_timeout=60.0)
print(json.dumps([done.returncode, done.stdout.decode(), late.timed_out, gone.returncode, value, told, page.status,
                  page.body.decode("latin-1")]))
"""
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(201)
        self.end_headers()
        self.wfile.write(self.rfile.read(int(self.headers["Content-Length"])) + self.headers["A"].encode())
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def test_stand_in_for_the_worker_does_what_the_worker_does(tmp_path: Path, free_port: int) -> None:
    tests = lay(tmp_path / "tests", worker_files())
    work = lay(tmp_path / "app", {"lib.py": "def pair(a, other):\n    return [a, other]\n", "server.py": SERVER})
    env = os.environ | {"PYTHONPATH": str(tests / WORKER), "SECUREBENCH_WORKDIR": str(work)}
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(port=free_port)],
        env=env,
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    told = "AttributeError: module 'lib' has no attribute 'bad'"
    assert json.loads(done.stdout) == [3, f"in {work}\n", True, 127, [1, [2]], told, 201, "\xffb"]


@pytest.fixture
def free_port() -> int:
    """Below those that are given to whoever does not care."""
    for port in range(25_000 + os.getpid() % 6_000, 32_000):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.mark.parametrize(
    ("checker", "must_reward", "reward"),
    [
        ("exit 0", False, "1"),
        ("exit 0", True, "0"),
        ("exit 3", False, "0"),
        ("echo 1 > /logs/verifier/reward.txt; exit 3", True, "0"),
        ("echo 0 > /logs/verifier/reward.txt", True, "0"),
        ("echo 1 > /logs/verifier/reward.txt", True, "1"),
    ],
)
def test_reward_is_the_checkers_word_and_never_better_than_its_end(
    tmp_path: Path, checker: str, must_reward: bool, reward: str
) -> None:
    script = reward_script("check me.sh", pytest=False, worker=False, must_reward=must_reward, workdir="/app")
    logs = lay(tmp_path, {"logs/verifier/reward.txt": "1\n", "tests/check me.sh": checker}) / "logs"
    moved = script.replace("/logs/", f"{logs}/").replace("/tests", str(tmp_path / "tests"))
    (tmp_path / "tests/check me.sh").write_text(checker.replace("/logs/", f"{logs}/"))
    subprocess.run(["bash", "-c", moved], check=True)
    assert (logs / "verifier/reward.txt").read_text().strip() == reward
