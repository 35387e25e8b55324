"""The README's promises: the demo, and the path from `init` to a first result."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.workbench import need_bubblewrap, securebench


def test_demo_shows_the_honest_agent_scoring_and_the_cheat_not() -> None:
    need_bubblewrap()
    done = securebench("demo", "--json")
    assert done.code == 0, done.err
    assert (done.json["honest"]["passed"], done.json["honest"]["total"]) == (9, 9)
    assert (done.json["cheat"]["passed"], done.json["cheat"]["failed"], done.json["cheat"]["errors"]) == (0, 9, 0)


def test_demo_prints_what_the_cheat_tried_and_that_it_found_nothing() -> None:
    need_bubblewrap()
    done = securebench("demo", "--quiet")
    assert "100.0 %" in done.out
    assert "search every file for the answer key" in done.out
    assert "FOUND" not in done.out


def test_init_validate_run_is_a_working_path(tmp_path: Path) -> None:
    need_bubblewrap()
    pack = tmp_path / "my-pack"
    assert securebench("init", pack).code == 0
    assert securebench("validate", pack).code == 0
    done = securebench("run", "--config", pack / "tester.yaml", "--json")
    assert done.code == 0, done.err
    assert (done.json["passed"], done.json["failed"]) == (1, 2)


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text("mine")
    done = securebench("init", tmp_path)
    assert done.code == 2
    assert (tmp_path / "manifest.yaml").read_text() == "mine"
    assert not (tmp_path / "tasks.jsonl").exists()
