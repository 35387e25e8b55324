"""Rows become tasks: every field in its lane, every file at its place."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from tests.packs import MANIFEST, VALID_ROWS, changed, load, row, tasks, write_pack

from securebench.benchmark_compiler import compile_benchmark_pack, compile_benchmark_row
from securebench.benchmark_pack import BenchmarkRow, file_refs
from securebench.families.registry import FAMILIES
from securebench.pack_schema import row_schema
from securebench.resources import Component, Visibility


@pytest.mark.parametrize("family", VALID_ROWS)
def test_every_field_of_a_row_is_one_resource_in_its_lane(tmp_path: Path, family: str) -> None:
    source = changed(VALID_ROWS[family], "eval.undeclared", {"any": ["thing"]})
    (task,) = tasks(write_pack(tmp_path, [source]))
    lanes = {resource.name: resource.visibility for resource in task.resources.resources}
    public = set(source["input"]) | ({"assets"} if "assets" in source else set())
    assert set(lanes) == public | set(source["eval"])
    assert {name for name, lane in lanes.items() if lane is Visibility.PUBLIC} == public
    assert lanes["undeclared"] is Visibility.HIDDEN
    values = {resource.name: resource.value for resource in task.resources.resources}
    assert {name: values[name] for name in source["input"]} == source["input"]
    assert {name: values[name] for name in source["eval"]} == source["eval"]
    assert (task.id, task.task_type, task.benchmark_id) == (source["id"], family, "test-pack")
    assert task.candidate_kind == FAMILIES[family].candidate


def test_private_files_go_to_the_lane_of_their_field(tmp_path: Path) -> None:
    source = changed(row("terminal_task"), "eval.extra", {"path": "secret.txt", "mount": "elsewhere"})
    (task,) = tasks(write_pack(tmp_path, [source]))

    def mounts(component: Component) -> set[str]:
        return {str(file.mount) for file in task.view_for(component).files()}

    assert mounts(Component.AGENT) == {"data.txt", "work/tree"}
    assert mounts(Component.TEST_SANDBOX) == {"data.txt", "work/tree", "check.py", "secret.txt"}
    assert mounts(Component.EVALUATOR) == {"data.txt", "work/tree", "elsewhere"}


def test_private_file_under_the_name_of_the_public_assets_stays_private(tmp_path: Path) -> None:
    """The loader refuses the key `assets`; should it ever get by, the compiler does not mix the lanes."""
    pack = load(write_pack(tmp_path, [row(assets=[{"path": "data.txt"}])]))
    value = changed(row(assets=[{"path": "data.txt"}]), "eval.assets", {"path": "secret.txt"})
    model = row_schema(FAMILIES["multiple_choice"]).validate(value, "f", lambda _: 1)
    assert not isinstance(model, list)
    assert len(list(file_refs(model, pack.manifest))) == 2
    pack.file_digests["hidden/secret.txt"] = "sha256:0"
    task = compile_benchmark_row(pack, BenchmarkRow(model, 1, "digest"))
    assert [str(file.path) for file in task.view_for(Component.AGENT).files()] == ["data.txt"]


def test_files_get_root_mount_and_mode_from_row_and_manifest(tmp_path: Path) -> None:
    manifest = MANIFEST + "asset_defaults: {read_only: false}\n"
    assets = [{"path": "data.txt"}, {"path": "tree", "mount": "x/y", "read_only": True}]
    (task,) = tasks(write_pack(tmp_path, [row(assets=assets)], manifest))
    first, second = task.view_for(Component.AGENT).files()
    assert (first.root, first.path, first.mount) == (tmp_path / "assets", PurePosixPath("data.txt"), first.path)
    assert (first.read_only, second.read_only) == (False, True)
    assert second.mount == PurePosixPath("x/y")


def test_tasks_are_a_lazy_sequence(tmp_path: Path) -> None:
    pack = load(write_pack(tmp_path, VALID_ROWS.values()))
    compiled = compile_benchmark_pack(pack)
    assert len(compiled) == 6
    assert [task.id for task in compiled] == list(pack.ids)
    assert compiled[-1].id == "terminal-1"
    assert [task.id for task in compiled[1:3]] == ["short-1", "free-1"]
    with pytest.raises(IndexError):
        compiled[6]


@pytest.mark.parametrize("limit, length", [(None, 6), (0, 0), (2, 2), (6, 6), (100, 6), (-1, 0)])
def test_limit_takes_the_first_tasks(tmp_path: Path, limit: int | None, length: int) -> None:
    compiled = compile_benchmark_pack(load(write_pack(tmp_path, VALID_ROWS.values())), limit=limit)
    assert len(compiled) == len(list(compiled)) == length


def test_environment_is_complete_with_defaults(tmp_path: Path) -> None:
    own = {"workdir": "/srv/x/", "resources": {"memory": "64 MiB", "disk": 4096, "cpus": 1}}
    plain, given = tasks(write_pack(tmp_path, [row(), row(id="2", environment=own)]))
    assert (plain.environment.workdir, plain.environment.image, plain.environment.memory) == ("/workspace", None, None)
    assert plain.environment.allowed_domains == ()
    assert given.environment.workdir == "/srv/x"
    assert (given.environment.memory, given.environment.disk, given.environment.cpus) == (64 * 2**20, 4096, 1.0)
