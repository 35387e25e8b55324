"""Packs that leak, or would: each function changes a pack on disk before it is loaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from securebench.audit.plays.agent_pack import REPOSITORY, Markers, bundle_with_a_future, read_rows, write_rows

DERIVED = {
    "compiled": "pkg/__pycache__/test_hidden.cpython-311.pyc",
    "runner": ".pytest_cache/v/cache/lastfailed",
    "coverage": ".coverage",
    "parallel_coverage": "pkg/.coverage.host.123",
    "coverage_pages": "htmlcov/test_hidden_py.html",
    "watcher": ".testmondata",
    "examples": ".hypothesis/examples/0a/0b",
}


def history_in_a_bundle(pack: Path, marks: Markers) -> None:
    """The repository comes as a bundle that goes on after the base commit."""
    data, base = bundle_with_a_future(marks)
    shutil.rmtree(pack / "assets" / REPOSITORY)
    (pack / "assets" / REPOSITORY).write_bytes(data)
    rows = read_rows(pack)
    for row in rows:
        if row["family"] == "repo_patch":
            row["input"]["base_commit"] = base
    write_rows(pack, rows)


def _history(name: str, pack: Path, marks: Markers) -> None:
    store = pack / "assets" / REPOSITORY / name
    store.mkdir(parents=True)
    (store / "later").write_text(f"fixed {marks.private}\n")


def git_directory(pack: Path, marks: Markers) -> None:
    _history(".git", pack, marks)


def git_directory_further_down(pack: Path, marks: Markers) -> None:
    _history("vendor/lib/.git", pack, marks)


def git_directory_in_capitals(pack: Path, marks: Markers) -> None:
    _history(".GIT", pack, marks)


def link_to_a_git_directory(pack: Path, marks: Markers) -> None:
    """As a submodule or a second work tree has it."""
    (pack / "assets" / REPOSITORY / ".git").write_text(f"gitdir: /srv/{marks.private}/.git\n")


def mercurial(pack: Path, marks: Markers) -> None:
    _history(".hg", pack, marks)


def subversion(pack: Path, marks: Markers) -> None:
    _history("sub/.svn", pack, marks)


def jujutsu(pack: Path, marks: Markers) -> None:
    _history(".jj", pack, marks)


def derived_files(pack: Path, marks: Markers) -> None:
    """What tools made of the hidden tests, wherever they leave it."""
    for path in DERIVED.values():
        (place := pack / "assets" / REPOSITORY / path).parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"\0" + marks.private.encode() + b"\0")


def _assets(pack: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    rows = read_rows(pack)
    for row in rows:
        change(row["assets"])
    write_rows(pack, rows)


def asset_above_its_root(pack: Path, _marks: Markers) -> None:
    _assets(pack, lambda assets: assets.append({"path": "../hidden/secret.txt", "mount": "s"}))


def asset_through_a_link(pack: Path, _marks: Markers) -> None:
    (pack / "assets" / "s").symlink_to("../hidden/secret.txt")
    _assets(pack, lambda assets: assets.append({"path": "s"}))


def asset_root_is_a_link(pack: Path, _marks: Markers) -> None:
    (pack / "open").symlink_to("hidden")
    (pack / "manifest.yaml").write_text("id: markers\nversion: 1\nasset_roots: {public: open, eval: hidden}\n")
    _assets(pack, lambda assets: assets.__setitem__(slice(None), [{"path": "secret.txt"}]))


def link_deep_in_an_asset(pack: Path, _marks: Markers) -> None:
    (pack / "assets" / REPOSITORY / "s").symlink_to("../../hidden")


def roots_that_overlap(pack: Path, _marks: Markers) -> None:
    """The hidden directory lies beneath the public one."""
    (pack / "hidden").rename(pack / "assets" / "hidden")
    (pack / "manifest.yaml").write_text("id: markers\nversion: 1\nasset_roots: {public: assets, eval: assets/hidden}\n")
    _assets(pack, lambda assets: assets.append({"path": "hidden"}))


def roots_that_overlap_in_another_case(pack: Path, _marks: Markers) -> None:
    """One directory under two spellings, where the file system takes them for one."""
    (pack / "manifest.yaml").write_text("id: markers\nversion: 1\nasset_roots: {public: HIDDEN, eval: hidden}\n")
    (pack / "HIDDEN").symlink_to("hidden")
    _assets(pack, lambda assets: assets.__setitem__(slice(None), [{"path": "secret.txt"}]))


def file_reference_in_public_input(pack: Path, _marks: Markers) -> None:
    """A value of the public lane in the form that names a hidden file."""
    rows = read_rows(pack)
    for row in rows:
        row["metadata"] = {"see": {"path": "secret.txt"}}
        key = (
            "instructions" if "instructions" in row["input"] else "question" if "question" in row["input"] else "prompt"
        )
        row["input"][key] = f"{row['input'][key]} " + '{"path": "secret.txt"}'
    write_rows(pack, rows)
