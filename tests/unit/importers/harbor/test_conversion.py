"""Task directories to rows: lanes, limits, images, and everything a sandbox cannot be, with the reason."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harbor_tasks import TOML, built, harbor, lay, terminal_bench

from securebench.errors import ConfigError
from securebench.importers.base import Request
from securebench.importers.importing import Import, ImportReport
from securebench.importers.registry import check_settings, find_format
from securebench.importers.sources import open_source

BASE = "base:1"
SOUND = "zz-sound"


def convert(source: Path, name: str = "harbor", **settings: str) -> tuple[dict[str, Any], ImportReport]:
    """Rows by id, and the report."""
    chosen = find_format(name)
    pack = source.parent / "pack"
    shutil.rmtree(pack, ignore_errors=True)
    pack.mkdir()
    given = {key.replace("_", "-"): value for key, value in settings.items()}
    with open_source(str(source)) as opened:
        _, report = Import(chosen, opened, Request(settings=check_settings(chosen, given))).write(pack)
    rows = map(json.loads, (pack / "tasks.jsonl").read_text().splitlines())
    return {row["id"]: row for row in rows}, report


def one(tmp_path: Path, files: dict[str, str], **settings: str) -> tuple[dict[str, Any] | None, ImportReport]:
    """The row of a task beside a sound one."""
    lay(tmp_path / "tasks/it", files)
    lay(tmp_path / "tasks" / SOUND, harbor(BASE))
    rows, report = convert(tmp_path / "tasks", **settings)
    return rows.get("it"), report


def test_harbor_task_has_every_part_in_its_lane(tmp_path: Path) -> None:
    row, report = one(tmp_path, harbor(BASE))
    assert row is not None
    assert row["input"] == {"instructions": harbor(BASE)["instruction.md"]}
    assert row["environment"] == {
        "image": BASE,
        "workdir": "/app",
        "timeout_seconds": 45.0,
        "resources": {"cpus": 1, "memory": "512m", "disk": "128m"},
    }
    assert row["assets"] == [
        {"path": "it/bin/count.sh", "mount": "bin/count.sh", "read_only": False},
        {"path": "it/data/sales.csv", "mount": "data/sales.csv", "read_only": False},
    ]
    assert row["eval"] == {
        "checker": {
            "timeout_seconds": 90.0,
            "source": "script",
            "reward": True,
            "path": "it/tests/test.sh",
            "mount": "tests/test.sh",
        },
        "test_files": [
            {"path": "it/tests/data/expected.json", "mount": "tests/data/expected.json"},
            {"path": "it/tests/test_outputs.py", "mount": "tests/test_outputs.py"},
        ],
        "reference_script": {"path": "it/solution"},
    }
    assert row["metadata"] == {
        "difficulty": "easy",
        "category": "data",
        "tags": ["tables"],
        "harbor_name": "acme/sum",
    }
    assert (tmp_path / "pack/hidden/it/solution/write.sh").is_file()
    assert not list((tmp_path / "pack/assets").rglob("*.py"))
    assert report.notes == []


def test_terminal_bench_task_is_taken_under_either_name(tmp_path: Path) -> None:
    lay(tmp_path / "tasks/double", terminal_bench(BASE))
    rows, _ = convert(tmp_path / "tasks", "terminal-bench")
    row = rows["double"]
    assert row["eval"]["run_tests"] == {"path": "double/run-tests.sh", "mount": "tests/run-tests.sh"}
    assert row["eval"]["checker"]["source"] == "pytest"
    assert (row["eval"]["checker"]["timeout_seconds"], row["environment"]["timeout_seconds"]) == (90.0, 60.0)
    assert row["eval"]["reference_script"] == {"path": "double/solution.sh"}
    assert [asset["mount"] for asset in row["assets"]] == ["Dockerfile", "docker-compose.yaml", "notes.txt"]
    assert convert(tmp_path / "tasks", "harbor")[0] == rows


def test_source_may_be_one_task_or_an_archive(tmp_path: Path) -> None:
    task = lay(tmp_path / "only", harbor(BASE))
    (row,), _ = convert(task)
    assert row == "only"
    with zipfile.ZipFile(tmp_path / "tasks.zip", "w") as archive:
        for path, text in harbor(BASE).items():
            archive.writestr(f"set/a/{path}", text)
    (row,), _ = convert(tmp_path / "tasks.zip")
    assert row == "a"


def test_task_that_names_its_image_uses_it(tmp_path: Path) -> None:
    toml = TOML + 'docker_image = "acme/sum:3"\n'
    row, _ = one(tmp_path, harbor(BASE) | {"task.toml": toml})
    assert row is not None
    assert row["environment"]["image"] == "acme/sum:3"
    assert row["environment"]["materialize_workdir_from_image"] is True
    assert "assets" not in row
    row, _ = one(tmp_path, harbor(BASE), image_template="mine/{task_id}:1")
    assert row is not None
    assert row["environment"]["image"] == "mine/it:1"


def test_image_that_must_be_built_has_the_same_name_for_the_same_files(tmp_path: Path) -> None:
    row, report = one(tmp_path, built(BASE))
    assert row is not None
    image = row["environment"]["image"]
    assert image.startswith("securebench-tasks/it:")
    assert [image in note.reason for note in report.notes] == [True]
    (tmp_path / "tasks/it/tests/test.sh").write_text("# other tests\n")
    assert convert(tmp_path / "tasks")[0]["it"]["environment"]["image"] == image
    (tmp_path / "tasks/it/environment/data/sales.csv").write_text("other\n")
    assert convert(tmp_path / "tasks")[0]["it"]["environment"]["image"] != image


@pytest.mark.parametrize("name", [".dockerignore", "Dockerfile.dockerignore"])
def test_files_of_a_dockerignore_are_left_to_a_build(tmp_path: Path, name: str) -> None:
    row, report = one(tmp_path, harbor(BASE) | {f"environment/{name}": "data\n"})
    assert row is not None
    assert ("assets" not in row, f"there is a {name};" in report.notes[0].reason) == (True, True)


ALL = f"FROM {BASE}\nWORKDIR /app\nCOPY . .\n"
SOLUTION = harbor(BASE)["solution/solve.sh"]
OUTPUTS = harbor(BASE)["tests/test_outputs.py"]


@pytest.mark.parametrize("build", ["", "RUN make\n"], ids=["assets", "image"])
@pytest.mark.parametrize(
    ("path", "text", "held"),
    [
        ("environment/solution.sh", SOLUTION, "solution/solve.sh"),
        ("environment/deep/er/notes", SOLUTION, "solution/solve.sh"),
        ("environment/.old.sh", f"#!/bin/zsh\n# ours\n\n{SOLUTION}\n\nexit 0\n", "solution/solve.sh"),
        ("environment/tests/test_outputs.py", OUTPUTS, "tests/test_outputs.py"),
        ("environment/check.py", f"import sys\n{OUTPUTS}", "tests/test_outputs.py"),
        ("environment/check", harbor(BASE)["tests/test.sh"], "tests/test.sh"),
    ],
)
def test_environment_that_holds_solution_or_tests_is_refused(
    tmp_path: Path, path: str, text: str, held: str, build: str
) -> None:
    files = harbor(BASE) | {"environment/Dockerfile": ALL + build}
    row, _ = one(tmp_path, files | {"environment/notes": "Nothing of the kind.\n"})
    assert row is not None  # the control
    row, report = one(tmp_path, files | {path: text})
    assert (row, report.left_out[0].reason) == (None, "agents would get a part of its tests or solution")
    assert report.left_out[0].detail == f"{path.removeprefix('environment/')} holds {held}"


def test_dockerfile_and_instruction_that_hold_the_solution_are_refused(tmp_path: Path) -> None:
    dockerfile = f"FROM {BASE}\nWORKDIR /app\nCOPY <<EOF /app/x\n{SOLUTION}EOF\n"
    for change in ({"environment/Dockerfile": dockerfile}, {"instruction.md": f"Do it so:\n\n{SOLUTION}"}):
        row, report = one(tmp_path, harbor(BASE) | change)
        assert (row, report.left_out[0].reason) == (None, "agents would get a part of its tests or solution")


def test_published_image_whose_dockerfile_copies_the_solution_is_refused(tmp_path: Path) -> None:
    named = {"task.toml": TOML + 'docker_image = "acme/sum:3"\n', "environment/Dockerfile": f"{ALL}RUN make\n"}
    assert one(tmp_path, harbor(BASE) | named)[0] is not None  # the control
    leaking = harbor(BASE) | named | {"environment/answer.sh": SOLUTION}
    row, report = one(tmp_path, leaking)
    assert (row, report.left_out[0].detail) == (None, "answer.sh holds solution/solve.sh")
    assert one(tmp_path, leaking, image_template="cleaned/{task_id}")[0] is not None
    for line in ("COPY *.sh /app/", "ARG A=answer.sh\nCOPY $A .", "ADD answer.sh x.tar .\nRUN x"):
        assert one(tmp_path, leaking | {"environment/Dockerfile": f"FROM {BASE}\nWORKDIR /app\n{line}\n"})[0] is None
    compose = {"docker-compose.yaml": "services: {main: {image: 'acme/double:1', working_dir: /app}}\n"}
    row, report = one(tmp_path / "older", terminal_bench(BASE) | compose)
    assert (row, report.left_out[0].detail) == (None, "run-tests.sh")


def test_solution_under_another_name_is_found_in_the_older_layout(tmp_path: Path) -> None:
    files = terminal_bench(BASE)
    row, report = one(tmp_path, files | {"oracle.sh": files["solution.sh"]})
    assert (row, report.left_out[0].detail) == (None, "oracle.sh holds solution.sh")


def test_data_that_agents_and_tests_have_is_told(tmp_path: Path) -> None:
    files = harbor(BASE) | {"environment/Dockerfile": ALL, "tests/data/before.csv": harbor(BASE)["environment/data/sales.csv"]}  # fmt: skip
    row, report = one(tmp_path, files | {"environment/__init__.py": "", "tests/__init__.py": ""})
    assert row is not None
    assert [note.reason for note in report.notes] == ["agents get what its tests have, too: data/sales.csv"]


@pytest.mark.parametrize("folder", ["tests", "solution", "tests/data"])
@pytest.mark.parametrize("build", ["", "RUN make\n"], ids=["assets", "image"])
def test_context_within_tests_or_solution_is_refused(tmp_path: Path, folder: str, build: str) -> None:
    compose = f"services:\n  main:\n    build:\n      context: ../{folder}\n"
    files = {"environment/docker-compose.yaml": compose, f"{folder}/Dockerfile": ALL + build}
    row, report = one(tmp_path, harbor(BASE) | files)
    assert (row, report.left_out[0].reason) == (None, "its Dockerfile puts its tests or solution where agents are")


def test_context_of_the_whole_task_gives_neither_tests_nor_solution(tmp_path: Path) -> None:
    compose = "services:\n  main:\n    build: {context: .., dockerfile: ./environment/Dockerfile}\n"
    row, report = one(
        tmp_path, harbor(BASE) | {"environment/docker-compose.yaml": compose, "environment/Dockerfile": ALL}
    )
    assert row is not None
    assert {asset["mount"].partition("/")[0] for asset in row["assets"]} == {"environment", "instruction.md"}
    assert "6 files are left out" in report.notes[0].reason


def test_exact_hosts_are_kept_and_the_whole_network_is_not_given(tmp_path: Path) -> None:
    some = TOML + 'network_mode = "allowlist"\nallowed_hosts = ["Data.Example"]\n'
    row, report = one(tmp_path, harbor(BASE) | {"task.toml": some})
    assert row is not None
    assert (row["environment"]["network"], report.notes) == ({"allowed_domains": ["data.example"]}, [])
    row, report = one(tmp_path, harbor(BASE) | {"task.toml": TOML + "allow_internet = true\n"})
    assert row is not None
    assert "network" not in row["environment"]
    assert "here agents have none" in report.notes[0].reason


def test_tests_may_be_asked_to_run_beside_candidate_code(tmp_path: Path) -> None:
    row, _ = one(tmp_path, harbor(BASE), assurance="shared_process")
    assert row is not None
    assert row["eval"]["checker"]["assurance"] == "shared_process"


@pytest.mark.parametrize("layout", [harbor, terminal_bench])
def test_metadata_that_is_not_kept_is_noted(tmp_path: Path, layout: Callable[[str], dict[str, str]]) -> None:
    files, given = layout(BASE), {"author_name": "ann", "minutes": 20, "answer": "42"}
    if layout is harbor:
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items())
        files["task.toml"] = TOML.replace("[metadata]\n", f"[metadata]\n{lines}")
    else:
        files["task.yaml"] += "".join(f"{name}: {value}\n" for name, value in given.items() if name != "author_name")
    row, report = one(tmp_path, files)
    assert row is not None
    assert "answer" not in row["metadata"]
    where = "metadata" if layout is harbor else "task.yaml"
    assert f"{where} is kept without answer, minutes" in [note.reason for note in report.notes]


def test_task_without_a_solution_is_taken_and_noted(tmp_path: Path) -> None:
    files = {path: text for path, text in harbor(BASE).items() if not path.startswith("solution")}
    row, report = one(tmp_path, files)
    assert row is not None
    assert [note.reason for note in report.notes] == ["has no solution that could be tried"]


def test_working_directory_that_nobody_states_can_be_given(tmp_path: Path) -> None:
    files = harbor(BASE) | {"environment/Dockerfile": f"FROM {BASE}\nCOPY data /work/data\n"}
    row, report = one(tmp_path, files)
    assert (row, report.left_out[0].reason) == (None, "its working directory is not known")
    row, _ = one(tmp_path, files, workdir="/work")
    assert row is not None
    assert row["environment"]["workdir"] == "/work"


COMPOSE = "services:\n  main:\n    build:\n      context: .\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task.toml": TOML + "gpus = 1\n"}, "needs a GPU"),
        ({"task.toml": TOML + '[[steps]]\nname = "a"\n'}, "has several steps"),
        ({"task.toml": TOML + 'os = "windows"\n'}, "is not for Linux"),
        ({"task.toml": TOML + '[environment.env]\nKEY = "${KEY}"\n'}, "needs variables"),
        ({"task.toml": TOML + '[[environment.mcp_servers]]\nname = "x"\n'}, "needs servers for its agent"),
        ({"task.toml": TOML + '[environment.healthcheck]\ncommand = "x"\n'}, "waits for a service"),
        ({"task.toml": TOML + "[verifier.environment]\ncpus = 1\n"}, "its tests need an image of their own"),
        (
            {"task.toml": TOML + 'network_mode = "allowlist"\nallowed_hosts = ["*.example"]\n'},
            "wants hosts that are no exact names",
        ),
        ({"task.toml": "not toml ="}, "task.toml cannot be read"),
        ({"task.toml": "agent = 3\n"}, "task.toml: agent is no table"),
        ({"task.toml": TOML.replace("timeout_sec = 45.0", "timeout_sec = -1")}, "agent.timeout_sec is no number of seconds"),
        ({"instruction.md": " \n"}, "has no instruction"),
        ({"environment/docker-compose.yaml": COMPOSE + "  db:\n    image: x\n"}, "needs several containers"),
        (
            {"environment/docker-compose.yaml": COMPOSE + "    privileged: true\n"},
            "its container needs what a sandbox does not give",
        ),
        (
            {"environment/docker-compose.yaml": COMPOSE + "    volumes: ['/var/run/docker.sock:/x']\n"},
            "its container needs what a sandbox does not give",
        ),
        ({"environment/docker-compose.yaml": COMPOSE + "    environment: [A=1]\n"}, "its container needs variables"),
        ({"environment/docker-compose.yaml": "services: [\n"}, "its compose file cannot be read"),
        ({"environment/Dockerfile": "FROM a\nCOPY missing /app/\nWORKDIR /app\n"}, "its Dockerfile cannot be read"),
        ({"environment/Dockerfile": "hello\n"}, "its Dockerfile cannot be read"),
        ({"environment/Dockerfile": "FROM a\nWORKDIR src\nCOPY data ./\n"}, "its working directory is not known"),
        ({"environment/Dockerfile": "FROM a\nWORKDIR /tests\n"}, "its working directory is where something else lies"),
        ({"environment/Dockerfile": "FROM a\nWORKDIR /app/../proc/1\n"}, "its working directory is where something else lies"),
        (
            {"environment/Dockerfile": "FROM a\nWORKDIR /app\nCOPY count.sh /usr/bin/count\n"},
            "its Dockerfile copies files outside its working directory",
        ),
    ],
)  # fmt: skip
def test_what_a_sandbox_cannot_be_is_told_per_task(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    row, report = one(tmp_path, harbor(BASE) | change)
    assert (row, [left.reason for left in report.left_out]) == (None, [reason])
    assert report.left_out[0].place.file == "it/task.toml"


@pytest.mark.parametrize("missing", ["instruction.md", "tests/test.sh", "environment/Dockerfile"])
def test_part_that_is_missing_is_told(tmp_path: Path, missing: str) -> None:
    files = {path: text for path, text in harbor(BASE).items() if path != missing and path != "tests/test_outputs.py"}
    row, report = one(tmp_path, files)
    assert (row, len(report.left_out)) == (None, 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"task.yaml": "instruction: x\nparser_name: swebench\n"}, "its tests are read by another parser than that of pytest"),
        ({"task.yaml": "difficulty: easy\n"}, "has no instruction"),
        ({"task.yaml": "- x\n"}, "task.yaml cannot be read"),
        ({"Dockerfile": f"FROM {BASE}\nWORKDIR /app\nCOPY tests /app/tests\n"}, "its Dockerfile puts its tests or solution where agents are"),
        ({"Dockerfile": f"FROM {BASE}\nWORKDIR /app\nCOPY ./solution.sh .\nRUN x\n"}, "its Dockerfile puts its tests or solution where agents are"),
    ],
)  # fmt: skip
def test_terminal_bench_task_that_has_no_place_is_told(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    row, report = one(tmp_path, terminal_bench(BASE) | change)
    assert (row, [left.reason for left in report.left_out]) == (None, [reason])


def test_instruction_of_older_tasks_is_the_base_one(tmp_path: Path) -> None:
    text = "descriptions:\n  - key: base\n    description: Do it.\n  - key: easy\n    description: Do it so.\n"
    row, _ = one(tmp_path, terminal_bench(BASE) | {"task.yaml": text})
    assert row is not None
    assert row["input"]["instructions"] == "Do it."


def test_directory_without_a_task_is_refused(tmp_path: Path) -> None:
    lay(tmp_path / "tasks", {"README.md": "x"})
    with pytest.raises(ConfigError, match="holds no task"):
        convert(tmp_path / "tasks")


def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="assurance is isolated or shared_process"):
        one(tmp_path, harbor(BASE), assurance="total")


def test_same_directories_make_the_same_bytes(tmp_path: Path) -> None:
    one(tmp_path, built(BASE))
    before = {path: path.read_bytes() for path in (tmp_path / "pack").rglob("*") if path.is_file()}
    convert(tmp_path / "tasks")
    assert {path: path.read_bytes() for path in (tmp_path / "pack").rglob("*") if path.is_file()} == before
