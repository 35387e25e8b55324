"""Rows of SWE-bench to rows of a pack: lanes, images, repositories, and what is refused with the reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.swebench_rows import PROJECTS, Project, make_bundles, write_rows

from securebench.benchmark_pack import load_benchmark_pack
from securebench.errors import ConfigError
from securebench.importers.base import Request
from securebench.importers.importing import Import, ImportReport
from securebench.importers.prompts import load_prompt
from securebench.importers.registry import check_settings, find_format
from securebench.importers.sources import open_source

CALC, WALLET, DJANGO, SYMPY = PROJECTS
TEMPLATE = "swebench/sweb.eval.x86_64.{hub_id}:latest"
PATCH = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


def row(**changes: Any) -> dict[str, Any]:
    return {
        "instance_id": "Acme__calc-7",
        "repo": "Acme/calc",
        "base_commit": "0" * 40,
        "patch": PATCH,
        "test_patch": PATCH.replace("x.py", "test_x.py"),
        "problem_statement": "It is wrong.",
        "hints_text": "Look closely.",
        "version": "1.0",
        "FAIL_TO_PASS": ["test_x.py::test_a"],
        "PASS_TO_PASS": ["test_x.py::test_b"],
    } | changes


def convert(place: Path, rows: list[dict[str, Any]], **settings: str) -> tuple[list[dict[str, Any]], ImportReport]:
    chosen = find_format("swebench")
    write_rows(place / "rows.jsonl", rows)
    shutil.rmtree(place / "pack", ignore_errors=True)
    (place / "pack").mkdir()
    given = {name.replace("_", "-"): value for name, value in settings.items()}
    request = Request(prompt=load_prompt("swebench", "default"), settings=check_settings(chosen, given))
    with open_source(str(place / "rows.jsonl")) as source:
        _, report = Import(chosen, source, request).write(place / "pack")
    written = (place / "pack/tasks.jsonl").read_text().splitlines()
    return [json.loads(line) for line in written], report


def test_fields_are_in_their_lanes(tmp_path: Path) -> None:
    (made,), _ = convert(tmp_path, [row()], image_template=TEMPLATE)
    assert made["input"] == {
        "repo": "Acme/calc",
        "base_commit": "0" * 40,
        "instructions": made["input"]["instructions"],
    }
    assert made["input"]["instructions"].endswith("\n\nIt is wrong.")
    assert made["environment"] == {
        "workdir": "/testbed",
        "image": "swebench/sweb.eval.x86_64.acme_1776_calc-7:latest",
    }
    assert made["eval"] == {
        "tests": {
            "source": "pytest",
            "fail_to_pass": ["test_x.py::test_a"],
            "pass_to_pass": ["test_x.py::test_b"],
            "test_patch": row()["test_patch"],
            "timeout_seconds": 1800,
        },
        "gold_patch": PATCH,
    }
    assert made["metadata"] == {"repo": "Acme/calc", "tags": ["Acme/calc"], "version": "1.0"}


def test_hints_interpreter_and_time_are_settings(tmp_path: Path) -> None:
    (made,), _ = convert(
        tmp_path, [row()], image_template="i:{version}", hints="yes", python="/opt/python", timeout="60"
    )
    assert (made["input"]["hints"], made["environment"]["image"]) == ("Look closely.", "i:1.0")
    assert (made["eval"]["tests"]["python"], made["eval"]["tests"]["timeout_seconds"]) == ("/opt/python", 60)


def test_lists_may_be_text(tmp_path: Path) -> None:
    (made,), _ = convert(tmp_path, [row(FAIL_TO_PASS='["test_x.py::test_a"]', PASS_TO_PASS="[]")], image_template="i")
    assert (made["eval"]["tests"]["fail_to_pass"], made["eval"]["tests"]["pass_to_pass"]) == (["test_x.py::test_a"], [])


def test_parquet_is_taken_as_the_hub_has_it(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra analysis is not installed")
    lists = ["test_x.py::test_a", "test_x.py::test_b"]
    (rows := tmp_path / "rows.jsonl").write_text(json.dumps(row(FAIL_TO_PASS=json.dumps(lists))) + "\n")
    duckdb.sql(f"copy (from read_json('{rows}')) to '{tmp_path}/rows.parquet' (format parquet)")
    chosen = find_format("swebench")
    request = Request(settings=check_settings(chosen, {"image-template": "i"}))
    (tmp_path / "pack").mkdir()
    with open_source(str(tmp_path / "rows.parquet")) as source:
        pack, report = Import(chosen, source, request).write(tmp_path / "pack")
    assert (report.left_out, pack.ids) == ([], ("Acme__calc-7",))


def test_what_the_known_patch_changes_among_restricted_files_is_allowed_and_nothing_else(tmp_path: Path) -> None:
    patch = PATCH + PATCH.replace("x.py", "django/test/client.py") + PATCH.replace("x.py", "setup.py")
    (made,), _ = convert(tmp_path, [row(patch=patch)], image_template="i")
    assert made["eval"]["candidate_policy"] == {"allow_paths": ["django/test/client.py", "setup.py"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"patch": ""}, "patch is empty"),
        ({"patch": "Change x."}, "patch is no patch"),
        ({"test_patch": None}, "test_patch is missing"),
        ({"patch": PATCH.replace("x.py", "conftest.py")}, "the known patch changes what test runners load"),
        ({"FAIL_TO_PASS": "test_a"}, "FAIL_TO_PASS is no list"),
        ({"FAIL_TO_PASS": [1]}, "FAIL_TO_PASS is no list of texts"),
        ({"FAIL_TO_PASS": []}, "FAIL_TO_PASS is empty"),
        ({"FAIL_TO_PASS": ["x.py::test_a[b"]}, "a test id is cut off"),
        ({"problem_statement": " "}, "problem_statement is empty"),
        ({"instance_id": 7}, "instance_id is not text"),
    ],
)
def test_row_that_has_no_place_is_told_with_the_reason(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    _, report = convert(tmp_path, [row(instance_id="sound"), row(**changes)], image_template="i")
    assert [(one.place.line, one.reason) for one in report.left_out] == [(2, reason)]


def test_bundle_gives_the_base_commit_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    rows = make_bundles(tmp_path, CALC)
    (made,), _ = convert(tmp_path, rows, repos=str(tmp_path / "repos"))
    assert made["input"]["repo"] == "repositories/acme__calc-7.bundle" == made["assets"][0]["path"]
    asset = tmp_path / "pack/assets" / made["input"]["repo"]
    before = asset.read_bytes(), (tmp_path / "pack/manifest.yaml").read_bytes()
    (tmp_path / "repos").rename(tmp_path / "elsewhere")
    convert(tmp_path, rows, repos=str(tmp_path / "elsewhere"))
    assert (asset.read_bytes(), (tmp_path / "pack/manifest.yaml").read_bytes()) == before


def test_tree_named_after_the_instance_is_taken_as_it_is(tmp_path: Path) -> None:
    (repos := tmp_path / "repos/acme__calc-7").mkdir(parents=True)
    (repos / "calc.py").write_text("x\n")
    (made,), _ = convert(tmp_path, [row(instance_id="acme__calc-7", repo="acme/calc")], repos=str(tmp_path / "repos"))
    assert (tmp_path / "pack/assets/repositories/acme__calc-7/calc.py").read_text() == "x\n"
    assert load_benchmark_pack(tmp_path / "pack/manifest.yaml", tmp_path / "pack/tasks.jsonl").ids == (made["id"],)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda repos: None, "its repository is not in repos"),
        (lambda repos: (repos / "acme__calc/.git").mkdir(parents=True), "its repository is a clone"),
        (lambda repos: (repos / "acme__calc.bundle").write_text("x"), "its git bundle cannot be used"),
    ],
)
def test_repository_that_cannot_be_had_is_told(tmp_path: Path, make: Any, reason: str) -> None:
    (repos := tmp_path / "repos").mkdir()
    make(repos)
    (repos / "sound").mkdir()
    (repos / "sound/x.py").write_text("")
    rows = [row(instance_id="sound", repo="o/r"), row(instance_id="acme__calc-7", repo="acme/calc")]
    _, report = convert(tmp_path, rows, repos=str(repos))
    assert [one.reason for one in report.left_out] == [reason]


def test_issue_that_shows_the_known_patch_is_told(tmp_path: Path) -> None:
    patch = PATCH.replace("+b", "+    return sorted(found, key=len)")
    shown = "Use\n\n```\nreturn sorted(found, key=len)\n```\n"
    rows = [row(patch=patch), row(patch=patch, problem_statement=shown), row(problem_statement="b")]
    _, report = convert(tmp_path, rows, image_template="i")
    told = "what agents are told holds every line that the known patch adds"
    assert [(one.place.line, one.reason) for one in report.notes] == [(2, told)]
    rows = [row(patch=patch, hints_text=shown)]
    assert convert(tmp_path, rows, image_template="i")[1].notes == []
    assert [one.reason for one in convert(tmp_path, rows, image_template="i", hints="yes")[1].notes] == [told]


def test_row_of_odd_words_has_no_say_in_the_image_of_others(tmp_path: Path) -> None:
    rows = [row(), row(instance_id="{repo}"), row(instance_id="a{b}"), row(version={"a": 1}), row(version=2)]
    made, report = convert(tmp_path, rows, image_template="i:{version}-{instance_id}")
    assert [one["environment"]["image"] for one in made] == ["i:1.0-acme__calc-7", "i:2-acme__calc-7"]
    assert [one.place.line for one in report.left_out] == [2, 3, 4]


@pytest.mark.parametrize("name", ["../up", "a/../../up", "/etc", ".hidden/x", "a/b/c"])
def test_no_name_leads_out_of_the_directory(tmp_path: Path, name: str) -> None:
    (repos := tmp_path / "in/repos").mkdir(parents=True)
    (tmp_path / "in/up").mkdir()
    (repos / "sound").mkdir()
    (repos / "sound/x.py").write_text("")
    rows = [row(instance_id="sound", repo="o/r"), row(instance_id=name, repo="acme/calc"), row(repo=name)]
    _, report = convert(tmp_path, rows, repos=str(repos))
    assert len(report.left_out) == 2


def test_one_tree_for_a_repository_stands_for_one_commit(tmp_path: Path) -> None:
    (repos := tmp_path / "repos/acme__calc").mkdir(parents=True)
    (repos / "x.py").write_text("")
    rows = [row(instance_id=f"i{n}", repo="acme/calc", base_commit=str(n) * 40) for n in (1, 2)]
    _, report = convert(tmp_path, rows, repos=str(repos.parent))
    assert [one.reason for one in report.left_out] == ["its repository has another base commit here"]


def test_commit_that_a_bundle_does_not_hold_is_told(tmp_path: Path) -> None:
    rows = make_bundles(tmp_path, CALC, WALLET)
    rows[0]["base_commit"] = "f" * 40
    _, report = convert(tmp_path, rows, repos=str(tmp_path / "repos"))
    assert "does not hold commit" in report.left_out[0].detail


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"image_template": "i", "repos": "."},
        {"image_template": "i-{task}"},
        {"image_template": "i-{repo"},
        {"image_template": "i", "hints": "some"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        convert(tmp_path, [row()], **settings)


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.repo)
def test_suites_are_those_of_the_projects(tmp_path: Path, project: Project) -> None:
    (made,), _ = convert(tmp_path, make_bundles(tmp_path, project), repos=str(tmp_path / "repos"))
    assert made["eval"]["tests"]["source"] == project.source
