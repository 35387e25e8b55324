"""Packs: YAML, rows and repositories that somebody wrote, or broke."""

from __future__ import annotations

import atexit
import math
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from securebench import _json, _yaml
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.errors import PackError
from securebench.resources import Component
from securebench.workspaces._git.bundle import open_bundle

MANIFEST = b"id: fuzz\nversion: 1\n"


@cache
def _pack() -> tuple[Path, Path]:
    place = Path(tempfile.mkdtemp(prefix="securebench-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    manifest = place / "manifest.yaml"
    manifest.write_bytes(MANIFEST)
    (place / "assets").mkdir()
    (place / "hidden").mkdir()
    return manifest, place / "tasks.jsonl"


def yaml(data: bytes) -> None:
    """Never an exception; a value only without problems, and then one that JSON can say."""
    document = _yaml.parse(data, "file.yaml")
    for problem in document.problems:
        assert str(problem).startswith("file.yaml")
    if document.problems:
        return
    _plain(document.value)
    _json.dumps(document.value)


def _plain(value: Any) -> None:
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for one in value.values():
            _plain(one)
    elif isinstance(value, list):
        for one in value:
            _plain(one)
    else:
        assert value is None or type(value) in (str, int, float, bool)
        assert not isinstance(value, float) or math.isfinite(value)


def rows(data: bytes) -> None:
    """A pack, or an error that names the line; and what the agent gets never depends on what is hidden."""
    manifest, tasks = _pack()
    tasks.write_bytes(data)
    try:
        pack = load_benchmark_pack(manifest, tasks)
        compiled = compile_benchmark_pack(pack)
        found = list(compiled)
    except PackError as error:
        if not {"tasks.jsonl", "manifest.yaml"} & set(re.split("[/:]", str(error))):
            raise AssertionError("it does not say which file is wrong") from error
        return
    for row in data.split(b"\n"):
        if row.strip():
            _json.loads(row)
    for task in found:
        assert {resource.name for resource in task.view_for(Component.WORKER).resources}.isdisjoint(
            {"gold_patch", "answer"}
        )


def bundle(data: bytes) -> None:
    """A git bundle is read with bounded work, or refused in our own words."""
    path = _pack()[0].parent / "bundle"
    path.write_bytes(data)
    try:
        for file in open_bundle(path).files("main"):
            assert file
    except ValueError:
        return
