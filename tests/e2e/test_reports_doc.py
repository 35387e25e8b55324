"""The commands of docs/reports.md work as they stand, and the pictures are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.gallery import chat_run

from securebench.cli import app

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "reports.md").read_text()
COMMANDS = [
    line.removeprefix("$ securebench ")
    for block in re.findall(r"```console\n(.*?)```", DOC, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("doc")
    for name in ("asked", "again"):
        chat_run(place / "runs", name)
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works(command: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "none"))
    result = CliRunner().invoke(app, shlex.split(command), standalone_mode=False)
    assert result.exception is None, result.exception
    assert result.return_value == 0, result.output


def test_there_are_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"report", "show"}


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.png")), ids=lambda path: path.name)
def test_pictures_are_small(picture: Path) -> None:
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 200_000
