"""What the README shows works as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.e2e.workbench import need_bubblewrap, securebench

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert len(found) == 1, f"expected one {language} block"
    return str(found[0])


def test_the_readmes_task_and_tester_file_run_and_pass(tmp_path: Path) -> None:
    need_bubblewrap()
    (tmp_path / "manifest.yaml").write_text("id: readme\nversion: 1\n")
    (tmp_path / "tasks.jsonl").write_text(block("json"))
    (tmp_path / "tester.yaml").write_text(block("yaml"))
    done = securebench("run", "--config", tmp_path / "tester.yaml", "--json")
    assert done.code == 0, done.err
    assert done.json["passed"] == 1


def test_the_readmes_commands_exist() -> None:
    for command in re.findall(r"securebench ([a-z]+)", README):
        assert securebench(command, "--help").code == 0, command


def test_every_link_of_the_docs_leads_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_starter_pack_matches_its_documentation() -> None:
    rows = (ROOT / "src" / "securebench" / "data" / "starter" / "tasks.jsonl").read_text().splitlines()
    assert json.loads(block("json")) in [json.loads(row) for row in rows]
