"""The pages about importing: every command can be typed, every mapping is one, and numbers are those that tests hold."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
from tests.e2e.test_public_imports import KNOWN
from tests.harbor_tasks import TOML, built, harbor, lay
from tests.imports import imported, jsonl, rows_of

from securebench.importers.mapping import load_mapping
from securebench.importers.prompts import load_prompt, variants
from securebench.importers.registry import FORMATS, check_settings, find_format
from securebench.importers.sources.hub import Wanted

DOCS = Path(__file__).resolve().parents[2] / "docs"
OURS = sorted(FORMATS)
SHARED = {"terminal-bench": "harbor"}  # formats on the page of another one


def page_of(name: str) -> Path:
    return DOCS / "importing.md" if name == "jsonl" else DOCS / "benchmarks" / f"{SHARED.get(name, name)}.md"


PAGES = sorted({DOCS / "importing.md", *map(page_of, OURS)})
COMMANDS = [
    line.removeprefix("$ securebench ").replace("COMMIT", "0" * 40)
    for page in PAGES
    for line in page.read_text("utf-8").splitlines()
    if line.startswith("$ securebench import ")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_can_be_typed(line: str) -> None:
    _, *args = shlex.split(line)
    command = import_module("securebench.cli.import").command
    given = command.make_context("import", args).params
    chosen = find_format(given["format_"])
    prompt = load_prompt(chosen.name, given["variant"], chosen.family)
    assert prompt.wants_examples is (given["examples"] is not None)
    said = {
        "image-template": given["image_template"],
        "repos": given["repos"],
        "build": "yes" if given["build"] else None,
    }
    settings = dict(setting.split("=", 1) for setting in given["settings"])
    check_settings(chosen, settings | {name: str(value) for name, value in said.items() if value is not None})
    if given["source"].startswith("hf:"):
        Wanted.parse(given["source"].removeprefix("hf:"))


def test_every_format_has_its_page_and_its_line() -> None:
    table = (DOCS / "importing.md").read_text("utf-8")
    for name in OURS:
        assert f"| `{name}` |" in table
    for name in OURS:
        page = page_of(name).read_text("utf-8")
        assert f"securebench import {name} " in page
        assert [
            setting for setting in FORMATS[name].settings if not re.search(rf"`{setting}`|[ -]{setting}[= ]", page)
        ] == []
    shown = {variant for name in OURS for variant in variants(name, FORMATS[name].family)}
    assert [variant for variant in shown if f"`{variant}`" not in table] == []


@pytest.mark.parametrize("name", KNOWN)
def test_defects_on_the_pages_are_those_that_tests_find(name: str) -> None:
    page = (DOCS / "benchmarks" / f"{name}.md").read_text("utf-8")
    told = set(
        re.findall(r"`((?:HumanEval|Mbpp)/\d+)`", page.partition("## Known defects")[2].partition("`--exclude")[0])
    )
    assert told == KNOWN[name]


def test_dockerfiles_become_what_the_page_says(tmp_path: Path) -> None:
    page = page_of("harbor").read_text("utf-8")
    assert all(f"`{word}`" in page for word in ("FROM", "WORKDIR", "COPY", "RUN", ".dockerignore", "docker_image"))
    lay(tmp_path / "tasks/plain", harbor("base:1"))
    lay(tmp_path / "tasks/built", built("base:1"))
    lay(tmp_path / "tasks/named", harbor("base:1") | {"task.toml": f'{TOML}docker_image = "acme/sum:3"\n'})
    pack, report = imported(tmp_path, "harbor", tmp_path / "tasks")
    images = {row["id"]: row["environment"]["image"].partition(":")[0] for row in rows_of(pack)}
    assert images == {"plain": "base", "built": "securebench-tasks/built", "named": "acme/sum"}
    assert [note.place.file for note in report.notes] == ["built/task.toml"]


def mappings() -> list[str]:
    texts = [page.read_text("utf-8") for page in PAGES]
    return [text for page in texts for text in re.findall(r"```yaml\n(family:.*?)```", page, re.DOTALL)]


def test_mappings_are_sound() -> None:
    assert len(mappings()) == 2
    for text in mappings():
        load_mapping(text.encode(), "mapping.yaml")


def test_rows_of_simpleqa_can_be_given_to_a_judge(tmp_path: Path) -> None:
    (mapping,) = [text for text in mappings() if "judge" in text]
    rows = jsonl(tmp_path / "rows.jsonl", [{"problem": "Who?", "answer": "Ann"}])
    pack, _ = imported(tmp_path, "jsonl", rows, mapping=mapping)
    (row,) = rows_of(pack)
    assert row["eval"]["rubric"]["criteria"].startswith("The right answer is: Ann.")
    assert "Ann" not in str(row["input"])
