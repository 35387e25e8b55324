"""`securebench audit --full` and `audit PACK` through the real command line, with one cheap threat of the catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.workbench import need_bubblewrap, question, securebench

CHEAP = "J02"


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "SECUREBENCH_KEY": ""}
    assert securebench("keys", "new", "mine", env=env).code == 0
    return env


def test_a_part_of_the_suite_is_shown_signed_and_not_taken_for_the_whole(
    bench: Any, keys: dict[str, str], tmp_path: Path
) -> None:
    files = {name: tmp_path / f"audit.{name}" for name in ("json", "sarif", "html", "signed")}
    done = securebench(
        "audit", "--full", "--only", CHEAP, "--backend", "bubblewrap", "--output", files["json"], "--sarif",
        files["sarif"], "--html", files["html"], "--sign", files["signed"], env=keys,
    )  # fmt: skip
    assert done.code == 0, done.out + done.err
    assert done.out.endswith("PASSED\n")
    found = json.loads(files["json"].read_text())
    assert {row["threat"] for row in found["rows"]} == {CHEAP}
    results = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert len(results) == len(found["rows"])
    assert all(one["locations"][0]["physicalLocation"] for one in results)
    assert "<script" not in files["html"].read_text()
    work = bench([question(1)], "echo 42")
    refused = securebench("run", "--config", work.config, "--quiet", "--with-audit", files["signed"], env=keys)
    assert refused.code == 2
    assert "is not a full audit" in refused.err
    assert not (work.output / "plan.json").exists()


def test_a_name_that_is_none_is_said_before_anything_is_played() -> None:
    need_bubblewrap()
    done = securebench("audit", "--full", "--only", "Z99", "--backend", "bubblewrap")
    assert done.code == 2
    assert "Z99" in done.err


def test_the_canaries_are_written_as_a_page_too(tmp_path: Path) -> None:
    need_bubblewrap()
    done = securebench("audit", "--isolation", "bubblewrap", "--html", tmp_path / "page.html")
    assert done.code == 0, done.out
    assert "Canaries of bubblewrap" in (tmp_path / "page.html").read_text()
