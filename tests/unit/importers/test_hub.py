"""Data sets of a hub: one commit, every file the one it names, and nothing taken that is not known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.imports import parquet
from tests.unit.importers.hub_server import COMMIT, Hub, serving

from securebench.errors import ConfigError
from securebench.importers.sources.hub import Wanted

ROWS = b'{"question": "1 + 1?", "answer": "#### 2"}\n'
NAME = f"hf:me/data@{COMMIT}"


def run(tmp_path: Path, url: str, source: str, *more: str, target: str = "pack") -> tuple[int, str]:
    """The command itself: the library reads its settings when it is imported."""
    env = {
        **os.environ,
        "HF_ENDPOINT": url,
        "HF_HOME": str(tmp_path / "cache"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_ETAG_TIMEOUT": "60",
        "HF_HUB_DOWNLOAD_TIMEOUT": "60",
        "no_proxy": "127.0.0.1",
    }
    argv = [sys.executable, "-m", "securebench", "import", "gsm8k", source, "-o", str(tmp_path / target), *more]
    done = subprocess.run(argv, check=False, env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_files_of_a_commit_become_a_pack_that_says_so(tmp_path: Path) -> None:
    table = parquet(tmp_path / "x.parquet", [{"question": "2 + 2?", "answer": "#### 4"}])
    files = {"README.md": b"# card\n", "main/test-0.parquet": table.read_bytes()}
    with serving(Hub(files)) as hub:
        code, output = run(tmp_path, hub.url, NAME, "--json")
        assert code == 0, output
        note = json.loads(output)["source"]
        assert (note["name"], note["revision"], note["licence"]) == ("me/data", COMMIT, "cc-by-4.0")
        assert note["url"] == f"{hub.url}/datasets/me/data"
        assert not any("README" in path for path in hub.asked)  # what is no table is not fetched
        before = len(hub.asked)
        assert run(tmp_path, hub.url, NAME, target="again")[0] == 0
        fetched = [path for path in hub.asked[before:] if "resolve" in path]
        assert fetched == []  # it was in the cache
    for file in ("manifest.yaml", "tasks.jsonl"):
        assert (tmp_path / "pack" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


def test_file_that_is_not_the_one_of_the_commit_is_refused(tmp_path: Path) -> None:
    changed = ROWS.replace(b"#### 2", b"#### 3")
    with serving(Hub({"test.jsonl": ROWS}, served={"test.jsonl": changed})) as hub:
        code, output = run(tmp_path, hub.url, NAME)
        assert code == 1
        assert "is not the file that the commit has" in output
    assert not (tmp_path / "pack").exists()


def test_answer_about_another_commit_is_refused(tmp_path: Path) -> None:
    with serving(Hub({"test.jsonl": ROWS}, answers_with="f" * 40)) as hub:
        assert "answers with commit ffff" in run(tmp_path, hub.url, NAME)[1]


def test_splits_and_patterns(tmp_path: Path) -> None:
    files = {"train.jsonl": ROWS, "test.jsonl": ROWS * 2}
    with serving(Hub(files)) as hub:
        assert "several splits" in run(tmp_path, hub.url, NAME)[1]
        assert "1 of 1 rows" in run(tmp_path, hub.url, f"{NAME}/train.jsonl")[1]
        assert "2 of 2 rows" in run(tmp_path, hub.url, NAME, "--only", "test*", target="two")[1]
        code, output = run(tmp_path, hub.url, f"{NAME}/dev.jsonl", target="three")
        assert code == 2
        assert "it has train.jsonl, test.jsonl" in output


def test_without_a_connection_one_named_file_comes_from_the_cache(tmp_path: Path) -> None:
    with serving(Hub({"test.jsonl": ROWS})) as hub:
        assert run(tmp_path, hub.url, NAME)[0] == 0
        url = hub.url
    code, output = run(tmp_path, url, NAME, target="two")
    assert code == 3
    assert f"A file that the cache has can be named: {NAME}/PATH" in output
    assert run(tmp_path, url, f"{NAME}/test.jsonl", target="three")[0] == 0
    assert run(tmp_path, url, f"{NAME}/other.jsonl", target="four")[0] == 3


@pytest.mark.parametrize("text", ["me/data@main", "me/data@" + "0" * 39, "me/data@" + "G" * 40, "data", "me/data"])
def test_a_commit_is_needed(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected (a commit of 40|hf:OWNER)"):
        Wanted.parse(text)


def test_what_the_hub_does_not_have_is_told(tmp_path: Path) -> None:
    with serving(Hub({"test.jsonl": ROWS})) as hub:
        for name in (f"hf:me/other@{COMMIT}", f"hf:me/data@{'f' * 40}"):
            code, output = run(tmp_path, hub.url, name)
            assert code == 2, output
            assert "there is no such data set or commit" in output


def test_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from securebench.importers.sources import open_source

    missing: Any = None
    monkeypatch.setitem(sys.modules, "huggingface_hub", missing)
    with pytest.raises(ConfigError, match=r"pip install 'securebench\[huggingface\]'"), open_source(NAME):
        pass
