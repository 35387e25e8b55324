"""What the README shows works as it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.e2e.workbench import need_bubblewrap, securebench

from securebench.testing.model_server import Turn, model_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(directory: Path, tester: str) -> Any:
    (directory / "manifest.yaml").write_text("id: readme\nversion: 1\n")
    (directory / "tasks.jsonl").write_text(blocks("json")[0])
    (directory / "tester.yaml").write_text(tester)
    done = securebench("run", "--config", directory / "tester.yaml", "--json")
    assert done.code == 0, done.err
    return done.json


def test_the_readmes_task_and_tester_file_run_and_pass(tmp_path: Path) -> None:
    need_bubblewrap()
    assert run(tmp_path, blocks("yaml")[0])["passed"] == 1


def test_the_readmes_chat_harness_runs_and_passes(tmp_path: Path) -> None:
    whole, harness = blocks("yaml")
    with model_server([Turn("Answer: B")], key=None) as model:
        harness = harness.replace("http://127.0.0.1:8000/v1", model.base_url).replace("usd: 5", "tokens: 5000")
        assert run(tmp_path, whole[: whole.index("harness:")] + harness)["passed"] == 1


def test_the_readmes_commands_exist() -> None:
    for command in re.findall(r"securebench ([a-z]+)", README):
        assert securebench(command, "--help").code == 0, command


def test_every_link_of_the_docs_leads_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_starter_pack_matches_its_documentation() -> None:
    rows = (ROOT / "src" / "securebench" / "data" / "starter" / "tasks.jsonl").read_text().splitlines()
    assert json.loads(blocks("json")[0]) in [json.loads(row) for row in rows]
