"""The commands of docs/compare.md work as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.control_runs import constant_run, write_control_pack

from securebench.cli import app

DOC = (Path(__file__).parents[2] / "docs" / "compare.md").read_text()
COMMANDS = [
    line.removeprefix("$ securebench ")
    for block in re.findall(r"```console\n(.*?)```", DOC, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("doc")
    pack = write_control_pack(place / "pack")
    for name, answer in (("baseline", "43"), ("candidate", "42"), ("third", "7")):
        constant_run(place / "runs", name, answer, pack=pack)
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works(command: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "none"))
    result = CliRunner().invoke(app, shlex.split(command), standalone_mode=False)
    assert result.exception is None, result.exception
    assert result.return_value == 0, result.output


def test_there_are_commands() -> None:
    assert {command.split()[0] for command in COMMANDS} == {"compare", "gate", "query", "export"}


def test_every_option_of_the_gate_is_explained() -> None:
    from securebench.cli.gate import command

    named = {option for one in command.params for option in one.opts if option.startswith("--")}
    assert {option for option in named - {"--by-id", "--format", "--json"} if f"`{option}" not in DOC} == set()
