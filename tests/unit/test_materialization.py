"""A component's directory is built from its view by adding bytes to nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import stat
import threading
import time
from pathlib import Path, PurePosixPath

import pytest
from tests.packs import VALID_ROWS, Row, changed, marked_rows, row, tasks, write_pack

from securebench import _fs
from securebench.errors import InfrastructureError, IntegrityError, PackError
from securebench.resources import Component, PackFile, Resource, ResourceView, Visibility
from securebench.tasks import SecureBenchTask
from securebench.workspaces.materialization import MaterializationLimits, VisibilityAwareMaterializer

MARKER = "zqmarker77"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def compiled(tmp_path: Path, source: Row) -> SecureBenchTask:
    return tasks(write_pack(tmp_path / "pack", [source]))[0]


def materialize(task: SecureBenchTask, target: Path, component: Component = Component.AGENT) -> dict[str, bytes]:
    materializer = VisibilityAwareMaterializer(component)
    payload = task.agent_payload() if component is Component.AGENT else None
    materializer.materialize(materializer.plan(task.view_for(component), payload), target)
    return tree(target)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_agent_gets_values_assets_and_task_file(tmp_path: Path, target: Path) -> None:
    source = row("terminal_task")
    task = compiled(tmp_path, source)
    files = materialize(task, target)
    assert files.keys() == {
        "data.txt",
        "securebench/public/context.json",
        "securebench/public/instructions.json",
        "task.json",
        "work/tree/a.txt",
        "work/tree/deep/b.txt",
    }
    assert json.loads(files["securebench/public/instructions.json"]) == source["input"]["instructions"]
    assert json.loads(files["task.json"]) == task.agent_payload()
    assert files["work/tree/deep/b.txt"] == b"b\n"


@pytest.mark.parametrize("source", marked_rows(MARKER), ids=[source["family"] for source in marked_rows(MARKER)])
def test_no_private_value_name_or_file_is_in_the_agents_tree(tmp_path: Path, target: Path, source: Row) -> None:
    task = compiled(tmp_path, source)
    files = materialize(task, target)
    assert not any(MARKER in name or MARKER.encode() in content for name, content in files.items())
    assert not any(b"checker" in content or b"secret file" in content for content in files.values())
    assert not any("evaluat" in name or "hidden" in name for name in files)
    control = tmp_path / "control"
    control.mkdir()
    assert any(MARKER.encode() in content for content in materialize(task, control, Component.EVALUATOR).values())


def test_test_sandbox_gets_its_lane_beneath_its_root(tmp_path: Path, target: Path) -> None:
    files = materialize(compiled(tmp_path, row("terminal_task")), target, Component.TEST_SANDBOX)
    assert files["securebench/evaluation_inputs/check.py"] == b"# the checker\n"
    assert json.loads(files["securebench/evaluation_inputs/needed_commands.json"]) == ["sort"]
    assert not any(name.startswith("securebench/evaluator") for name in files)


def test_file_that_two_private_fields_name_is_written_once(tmp_path: Path, target: Path) -> None:
    source = changed(row("terminal_task"), "eval.run_tests", {"path": "secret.txt"})
    files = materialize(compiled(tmp_path, source), target, Component.TEST_SANDBOX)
    assert files["securebench/evaluation_inputs/secret.txt"] == b"the secret file\n"


def test_everything_has_the_fixed_time_and_a_plain_mode(tmp_path: Path, target: Path) -> None:
    pack = write_pack(tmp_path / "pack", [row("terminal_task")])
    (pack / "assets/data.txt").chmod(0o4711)
    (pack / "assets/tree/a.txt").chmod(0o600)
    before = os.umask(0o077)
    try:
        materialize(tasks(pack)[0], target)
    finally:
        os.umask(before)
    modes = {}
    for path in target.rglob("*"):
        assert path.stat().st_mtime_ns == _fs.EPOCH_NS
        modes[str(path.relative_to(target))] = stat.S_IMODE(path.stat().st_mode)
    assert modes["data.txt"] == 0o555
    assert modes["work/tree/a.txt"] == 0o644
    assert modes["task.json"] == 0o644
    assert modes["work/tree"] == modes["securebench/public"] == 0o755
    assert target.stat().st_mtime_ns == _fs.EPOCH_NS


def test_directory_that_is_not_empty_is_refused(tmp_path: Path, target: Path) -> None:
    (target / "left over").touch()
    with pytest.raises(ValueError, match="is not empty"):
        materialize(compiled(tmp_path, row()), target)


@pytest.mark.parametrize("component", [Component.WORKER, Component.TEST_SANDBOX, Component.EVALUATOR])
def test_view_of_another_component_is_refused(tmp_path: Path, component: Component) -> None:
    task = compiled(tmp_path, row("terminal_task"))
    with pytest.raises(ValueError, match="cannot be materialized for agent"):
        VisibilityAwareMaterializer(Component.AGENT).plan(task.view_for(component))


def _view(*resources: Resource) -> ResourceView:
    return ResourceView(Component.AGENT, resources)


def _file(tmp_path: Path, mount: str, path: str = "f") -> Resource:
    file = PackFile(tmp_path, PurePosixPath(path), PurePosixPath(mount), read_only=True, digest="")
    return Resource("assets", Visibility.PUBLIC, None, (file,), is_asset=True)


@pytest.mark.parametrize("mount", ["eval/x", "securebench/public/x", "task.json", "TASK.JSON/x"])
def test_plan_refuses_what_the_policy_refuses(tmp_path: Path, mount: str) -> None:
    with pytest.raises(PackError, match="refused"):
        VisibilityAwareMaterializer(Component.AGENT).plan(_view(_file(tmp_path, mount)))


def test_plan_refuses_colliding_mounts(tmp_path: Path) -> None:
    with pytest.raises(PackError, match="collide"):
        VisibilityAwareMaterializer(Component.AGENT).plan(_view(_file(tmp_path, "A/b"), _file(tmp_path, "a")))


@pytest.mark.parametrize("name", ["../../escape", "a/../../../escape", "/escape", "a\0b", "a\\b", "a/b"])
def test_value_whose_name_is_no_plain_name_is_refused(tmp_path: Path, target: Path, name: str) -> None:
    materializer = VisibilityAwareMaterializer(Component.AGENT)
    with pytest.raises(PackError):
        materializer.materialize(materializer.plan(_view(Resource(name, Visibility.PUBLIC, 1))), target)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


@pytest.mark.parametrize(
    "limits", [MaterializationLimits(files=3), MaterializationLimits(total_bytes=50)], ids=["files", "bytes"]
)
def test_workspace_over_its_budget_is_refused(tmp_path: Path, target: Path, limits: MaterializationLimits) -> None:
    task = compiled(tmp_path, row("terminal_task"))
    materializer = VisibilityAwareMaterializer(Component.AGENT, limits)
    plan = materializer.plan(task.view_for(Component.AGENT), task.agent_payload())
    with pytest.raises(PackError, match=r"exceed|too many"):
        materializer.materialize(plan, target)


def test_asset_replaced_by_a_link_after_loading_is_refused(tmp_path: Path, target: Path) -> None:
    task = compiled(tmp_path, row(assets=[{"path": "tree"}]))
    (tmp_path / "pack/assets/tree/a.txt").unlink()
    (tmp_path / "pack/assets/tree/a.txt").symlink_to("../../hidden/secret.txt")
    with pytest.raises(PackError, match="symbolic link"):
        materialize(task, target)


def test_host_that_cannot_read_or_write_is_an_infrastructure_fault(tmp_path: Path, target: Path) -> None:
    task = compiled(tmp_path, row(assets=[{"path": "data.txt"}]))
    (tmp_path / "pack/assets").rename(tmp_path / "pack/gone")
    with pytest.raises(InfrastructureError, match="No such file"):
        materialize(task, target)


@pytest.mark.parametrize("family", VALID_ROWS)
def test_trees_of_two_tasks_that_differ_only_in_private_fields_are_the_same(tmp_path: Path, family: str) -> None:
    def listing(name: str, source: Row) -> list[tuple[str, int, int, bytes]]:
        target = tmp_path / name / "target"
        target.mkdir(parents=True)
        materialize(compiled(tmp_path / name, source), target)
        paths = [Path(base, child) for base, folders, files in os.walk(target) for child in (*folders, *files)]
        return [
            (str(p.relative_to(target)), p.stat().st_mode, p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
            for p in sorted(paths)
        ]

    plain = row(family)
    assert listing("a", plain) == listing("b", changed(plain, "eval.zz_notes", {"path": "secret.txt", "mount": "zz"}))


@pytest.mark.parametrize("change", ["content", "executable", "added"])
def test_asset_changed_after_loading_is_an_integrity_fault(tmp_path: Path, target: Path, change: str) -> None:
    task = compiled(tmp_path, row("terminal_task"))
    file = tmp_path / "pack" / "assets" / "tree" / "a.txt"
    if change == "content":
        file.write_text("other")
    elif change == "executable":
        file.chmod(0o755)
    else:
        file.with_name("new.txt").write_text("new")
    with pytest.raises(IntegrityError, match="changed since the pack was loaded"):
        materialize(task, target)


@pytest.mark.parametrize("component", list(Component))
def test_every_component_gets_its_lanes_and_no_other(tmp_path: Path, target: Path, component: Component) -> None:
    files = materialize(compiled(tmp_path, row("terminal_task")), target, component)
    lanes = {name.split("/")[1] for name in files if name.startswith("securebench/")}
    expected = {
        Component.AGENT: {"public"},
        Component.WORKER: {"public"},
        Component.TEST_SANDBOX: {"public", "evaluation_inputs"},
        Component.EVALUATOR: {"public", "evaluator"},
    }
    assert lanes == expected[component]


def test_empty_directories_and_executable_bits_are_kept(tmp_path: Path, target: Path) -> None:
    pack = write_pack(tmp_path / "pack", [row(assets=[{"path": "tree"}])])
    (pack / "assets/tree/hollow/deeper").mkdir(parents=True)
    (pack / "assets/tree/run").write_text("#!/bin/sh\n")
    (pack / "assets/tree/run").chmod(0o700)
    materialize(tasks(pack)[0], target)
    assert (target / "tree/hollow/deeper").is_dir()
    assert stat.S_IMODE((target / "tree/run").stat().st_mode) == 0o555
    assert stat.S_IMODE((target / "tree/a.txt").stat().st_mode) == 0o444
    assert all(path.stat().st_mtime_ns == _fs.EPOCH_NS for path in target.rglob("*"))


@pytest.mark.parametrize("what", ["link", "FIFO", "socket", "deep", "name"])
def test_asset_that_is_not_plain_is_refused(tmp_path: Path, target: Path, what: str) -> None:
    task = compiled(tmp_path, row(assets=[{"path": "tree"}]))
    place = tmp_path / "pack/assets/tree" / ("bad" if what != "name" else "bad\nname")
    if what == "link":
        place.symlink_to("a.txt")
    elif what == "FIFO":
        os.mkfifo(place)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            here = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
            server.bind(f"/proc/self/fd/{here}/bad")  # short, whatever the directory is called
            os.close(here)
    elif what == "deep":
        (place / "/".join(["d"] * 70)).mkdir(parents=True)
    else:
        place.write_text("x")
    with pytest.raises(PackError, match="asset"):
        materialize(task, target)


def test_a_source_swapped_for_links_during_the_copy_never_leads_outside(tmp_path: Path) -> None:
    """Whatever wins the race, the copy holds the pack's bytes or is refused."""
    pack = write_pack(tmp_path / "pack", [row(assets=[{"path": "tree"}])])
    tree = pack / "assets/tree"
    for number in range(40):
        (tree / f"d{number}").mkdir()
        (tree / f"d{number}" / "f").write_text("public\n")
    task = tasks(pack)[0]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text(MARKER)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for number in range(0, 40, 3):
                (tree / f"d{number}").rename(tmp_path / "aside")
                (tree / f"d{number}").symlink_to(outside)
                (tree / f"d{number}").unlink()
                (tmp_path / "aside").rename(tree / f"d{number}")

    racer = threading.Thread(target=swap)
    racer.start()
    try:
        outcomes: set[bool | None] = set()
        deadline = time.monotonic() + 60
        for number in itertools.count():
            if (number >= 40 and None in outcomes) or time.monotonic() > deadline:
                break
            (target := tmp_path / f"target{number}").mkdir()
            try:
                outcomes.add(MARKER.encode() in b"".join(materialize(task, target).values()))
            except (PackError, IntegrityError):
                outcomes.add(None)
    finally:
        over.set()
        racer.join()
    assert True not in outcomes
    assert None in outcomes, "the race was never lost, so nothing was tested"


def test_positive_control_a_copy_that_follows_links_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text(MARKER)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "d").symlink_to(tmp_path / "outside")
    shutil.copytree(tmp_path / "tree", tmp_path / "copy")
    assert (tmp_path / "copy" / "d" / "f").read_text() == MARKER


def test_the_digest_of_a_copy_is_the_digest_of_the_tree(tmp_path: Path, target: Path) -> None:
    pack = write_pack(tmp_path / "pack", [row(assets=[{"path": "tree"}])])
    (pack / "assets/tree/large").write_bytes(os.urandom(3 * 2**20 + 7))
    (pack / "assets/tree/empty").touch()
    materialize(tasks(pack)[0], target)  # an IntegrityError if the two ways to compute it disagreed
    assert (target / "tree/large").read_bytes() == (pack / "assets/tree/large").read_bytes()
