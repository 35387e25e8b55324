"""`securebench tools`, with overlays put into the cache by hand: the command itself needs no network to show them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from securebench.harnesses.tools.cache import OverlayRecord, Package, ToolCache, summary_of
from securebench.harnesses.tools.description import machine_name

Run = subprocess.CompletedProcess[str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *args: str) -> Run:
    env = {**os.environ, "SECUREBENCH_HOME": str(home), "npm_config_registry": "http://127.0.0.1:9/"}
    argv = [sys.executable, "-m", "securebench", "tools", *args]
    return subprocess.run(argv, capture_output=True, env=env, text=True, timeout=180, check=False)


def put(home: Path, version: str = "9.9.9") -> str:
    """A whole overlay of codex that nobody published."""
    cache = ToolCache(home / "tools")
    with cache.workspace() as work:
        (work / "overlay" / "tree" / "program").mkdir(parents=True)
        (work / "overlay" / "tree" / "program" / "codex").write_bytes(b"x")
        for path in (work / "overlay" / "tree", work / "overlay" / "tree" / "program"):
            path.chmod(0o755)
        summary = summary_of(work / "overlay" / "tree")
        record = OverlayRecord(
            tool="codex",
            version=version,
            machine=machine_name(),
            libc="any",
            program=("program/codex",),
            version_argument="--version",
            packages=(Package(name="@openai/codex", version=version, integrity="sha512-x", at="program"),),
            tree=summary.digest,
            files=summary.files,
            bytes=summary.bytes,
        )
        return cache.add(work / "overlay", record)


def test_list_install_and_rm(home: Path) -> None:
    digest = put(home)
    listed = run(home, "list", "--verify")
    assert (listed.returncode, listed.stdout.split()[:3]) == (0, ["codex@9.9.9", digest[:19], "static"])
    described = json.loads(run(home, "list", "--json").stdout)
    assert described["root"] == str(home / "tools")
    assert [tool["version"] for tool in described["tools"]] == ["9.9.9"]
    installed = run(home, "install", "codex@9.9.9", "--json")
    assert installed.returncode == 0, installed.stderr
    [tool] = json.loads(installed.stdout)["tools"]
    assert (tool["digest"], tool["program"]) == (digest, ["/securebench-tools/codex/program/codex"])
    assert json.loads(run(home, "rm", "codex@9.9.9", "--json").stdout) == {"removed": [digest]}
    assert not list((home / "tools" / "sha256").iterdir())


def test_nothing_there(home: Path) -> None:
    listed = run(home, "list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "securebench tools install codex" in listed.stderr
    assert json.loads(run(home, "list", "--json").stdout) == {"root": str(home / "tools"), "tools": [], "damaged": []}


def test_changed_tree_is_shown_by_verify_only_and_refused_by_install(home: Path) -> None:
    digest = put(home)
    (home / "tools" / "sha256" / digest[7:] / "tree" / "program" / "codex").write_bytes(b"y")
    assert run(home, "list").returncode == 0
    listed = run(home, "list", "--verify", "--json")
    assert (listed.returncode, json.loads(listed.stdout)["damaged"]) == (1, [digest])
    assert "securebench tools rm codex@9.9.9" in listed.stderr
    refused = run(home, "install", "codex@9.9.9")
    assert refused.returncode == 1
    assert "was changed after it was fetched" in refused.stderr


def test_damaged_record_is_shown_and_removed_by_digest(home: Path) -> None:
    digest = put(home)
    (home / "tools" / "sha256" / digest[7:] / "overlay.json").write_text("{}")
    listed = run(home, "list")
    assert (listed.returncode, listed.stdout.split()) == (1, ["-", digest[:19], "damaged"])
    assert run(home, "rm", digest[:19]).stdout == f"removed {digest}\n"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["install", "codx"], 2, "did you mean 'codex'"),
        (["install", "codex@^1"], 2, "is not a version"),
        (["install"], 2, "Missing argument"),
        (["rm", "codex@1.0.0"], 2, "is not there; see: securebench tools list"),
        (["rm", "sha256:"], 2, "is not there"),
    ],
)
def test_what_cannot_be_done_is_said(home: Path, args: list[str], code: int, words: str) -> None:
    done = run(home, *args)
    assert done.returncode == code
    assert words in done.stderr
