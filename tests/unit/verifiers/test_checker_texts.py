"""Whose a program text is, and which first lines of scripts are followed, where a checker runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from securebench.verifiers.checkers.inside import texts
from securebench.verifiers.checkers.inside.texts import OWN, THEIRS, UNCLEAR, whose
from securebench.verifiers.checkers.view import interpreter

CHECKER = "python3 -c 'assert f(3) == 9'\nsubprocess.run(\"print(1)\\nprint(2)\")\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tests := tmp_path / "tests").mkdir()
    (tests / "check.sh").write_text(CHECKER)
    monkeypatch.setattr(texts, "TESTS", str(tests))
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


@pytest.mark.parametrize(
    ("text", "file", "found"),
    [
        (b"", b"", OWN),
        (b"assert f(3) == 9", b"assert f(3) == 9", OWN),  # the checker's files say it
        (b"print(1)\nprint(2)", b"print(1)", OWN),  # and this, with its line break spelled out
        (b"print(1)\nprint(2)", b"print(1)\nprint(2)\n", UNCLEAR),
        (b"make all", b"make all\n", THEIRS),
        (b"make all", b"ma\0ke all", THEIRS),  # as a shell passes it on
        (b"exit()\nassert g() == 1", b"exit()", UNCLEAR),
        (b"exit && test x", b"exit", UNCLEAR),
        (b"grep -qx Paris /app/answer.txt", b"Paris\n", OWN),  # an expected word, not a program
        (b"grep -qx 4217 /app/answer.txt", b"4217\n", OWN),
        (b"something else", b"not in it()", OWN),
    ],
)
def test_text_belongs_to_who_could_have_written_it(workspace: Path, text: bytes, file: bytes, found: str) -> None:
    (workspace / "file").write_bytes(file)
    assert whose(text, str(workspace)) == found


def test_one_word_is_enough_where_a_shell_reads_its_program(workspace: Path) -> None:
    (workspace / "setup.sh").write_text("cat\n")
    assert whose(b"cat\ntest -e made || exit 1\n", str(workspace)) == OWN
    assert whose(b"cat\ntest -e made || exit 1\n", str(workspace), runs_words=True) == UNCLEAR
    (workspace / "setup.sh").write_text("4217\n")
    assert whose(b"grep -qx 4217 answer\n", str(workspace), runs_words=True) == OWN


def test_links_and_large_files_of_the_workspace_are_no_trouble(workspace: Path) -> None:
    (workspace / "dangling").symlink_to("nowhere")
    (workspace / "large").write_bytes(b"make all" * 100)
    assert whose(b"make all", str(workspace)) == OWN


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"#!/bin/bash\n", "bash"),
        (b"#!/bin/bash -eu\n", "bash"),
        (b"#!/usr/bin/env python3.11\n", "python3"),
        (b"#!/usr/bin/python3 -u\n", "python3"),
        (b"#!/usr/bin/perl -w\n", "perl"),
        (b"#!/usr/bin/awk -f\n", "awk"),
        (b"#!/usr/bin/make -f\n", "make"),
        (b"#!/bin/bash -c\n", None),
        (b"#!/bin/sh -s\n", None),
        (b"#!/bin/bash -xc\n", None),
        (b"#!/usr/bin/python3 -m\n", None),
        (b"#!/usr/bin/python3 -c\n", None),
        (b"#!/usr/bin/perl -e\n", None),
        (b"#!/usr/bin/awk\n", None),
        (b"#!/usr/bin/env gawk\n", None),
        (b"#!/usr/bin/gawk -e\n", None),
        (b"#!/usr/bin/node -p\n", None),
    ],
)
def test_first_line_counts_only_where_the_script_itself_is_the_program(line: bytes, name: str | None) -> None:
    assert interpreter(line) == name
