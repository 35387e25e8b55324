"""`terminal_task`: assets and an image's directory go in, the whole tree comes out, without what is ours."""

from __future__ import annotations

import asyncio
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.images.builders import make_store
from tests.unit.workspaces.conftest import Build, repo_row, take, terminal_row
from tests.unit.workspaces.git_cases import git, need_git, write_files

from securebench import images
from securebench._fs import EPOCH_NS
from securebench.candidates.store import CandidateStore
from securebench.environment import TaskEnvironment
from securebench.errors import ConfigError, PackError, SandboxUnavailable
from securebench.families.base import CandidateKind
from securebench.images._tree import remove_entry
from securebench.resources import Component, ResourceView
from securebench.workspaces.building import WorkspaceRequest, build_workspace
from securebench.workspaces.limits import MaterializationLimits

FILES: dict[str, str | bytes] = {"assets/data.txt": "data\n", "assets/tool": "#!/bin/sh\n", "hidden/x": "x"}
ROW = terminal_row(assets=[{"path": "data.txt"}, {"path": "tool", "read_only": False}])
FROM_IMAGE = {"image": "tasks/app:1", "workdir": "/app", "materialize_workdir_from_image": True}


def names(store: CandidateStore, digest: str | None) -> set[str]:
    assert digest is not None
    return {entry.path for entry in store.load(digest).entries}


def test_assets_are_the_initial_workspace_and_what_is_there_at_the_end_counts(
    build: Build, store: CandidateStore
) -> None:
    workspace = build(ROW, FILES)
    assert names(store, take(workspace).workspace) == {"data.txt", "tool"}
    write_files(workspace.seed, {"result/out.txt": "42\n"})
    (workspace.seed / "tool").unlink()
    candidate = take(workspace)
    assert names(store, candidate.workspace) == {"data.txt", "result", "result/out.txt"}
    assert candidate.metadata["capture"]["files"] == 2
    assert candidate.metadata["capture"]["pristine"] == workspace.pristine.digest


def test_untouched_is_what_a_capture_of_the_untouched_gives(build: Build) -> None:
    workspace = build(ROW, FILES)
    assert workspace.untouched().workspace == take(workspace).workspace == workspace.pristine.digest


def test_files_of_ours_that_were_changed_are_part_of_the_workspace(build: Build, store: CandidateStore) -> None:
    workspace = build(ROW, FILES)
    write_files(workspace.seed, {"task.json": "mine", "securebench/public/more": "mine"})
    found = names(store, take(workspace).workspace)
    assert found == {"data.txt", "tool", "task.json", "securebench", "securebench/public", "securebench/public/more"}


def test_declared_read_only_is_read_only(build: Build) -> None:
    workspace = build(ROW, FILES)
    assert stat.S_IMODE((workspace.seed / "data.txt").stat().st_mode) == 0o444
    assert stat.S_IMODE((workspace.seed / "tool").stat().st_mode) == 0o644


def test_hostile_leftovers_never_come_out_and_honest_ones_never_fail(build: Build, store: CandidateStore) -> None:
    workspace = build(ROW, FILES)
    seed = workspace.seed
    write_files(
        seed,
        {"venv/bin/python": "-> ../lib/real", "venv/lib/real*": "x", "secret": "-> /etc/passwd", "up": "-> ../../x"},
    )
    os.mkfifo(seed / "pipe")
    os.link(seed / "tool", seed / "hard")
    (seed / "sparse").touch()
    os.truncate(seed / "sparse", 50 * 2**20)
    candidate = take(workspace)
    found = names(store, candidate.workspace)
    assert found >= {"venv/bin/python", "venv/lib/real", "hard", "sparse"}
    assert not found & {"secret", "up", "pipe"}
    assert {item["path"] for item in candidate.metadata["capture"]["left_out"]} >= {"secret", "up", "pipe"}


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An imported image `tasks/app:1` with things in /app; the root it was made from."""
    root = write_files(
        tmp_path / "root",
        {
            "app/main.py": "main\n", "app/run.sh*": "#!/bin/sh\n", "app/data.txt": "the image's\n",
            "app/venv/bin/python": "-> /usr/bin/python3", "app/self": "-> main.py", "app/sub/deep": "deep\n",
            "app/.git/HEAD": "ref: refs/heads/main\n", "app/.git/objects/x": "future commits\n",
            "app/lib/__pycache__/hidden.pyc": "stale\n", "app/lib/.git": "gitdir: ../../x\n", "app/lib/a.py": "a\n",
            "app/.gitignore": "*.so\n", "app/native.so": "built\n", "etc/secret": "not the workdir\n",
        },
    )  # fmt: skip
    (root / "app" / "hollow").mkdir()
    os.utime(root / "app" / "main.py", (1_500_000_000, 1_500_000_000))
    (root / "srv").symlink_to("app")
    made = make_store(tmp_path / "images")
    made.import_image(f"dir:{root}", "tasks/app:1")
    monkeypatch.setattr(images, "default_store", lambda: made)
    yield root
    parent = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    remove_entry(parent, b"images")
    os.close(parent)


def test_the_images_directory_is_the_beginning_and_assets_win(build: Build, image: Path, store: CandidateStore) -> None:
    workspace = build(ROW | {"environment": FROM_IMAGE}, FILES)
    seed = workspace.seed
    assert (seed / "data.txt").read_text() == "data\n"
    assert (seed / "main.py").read_text() == "main\n"
    assert stat.S_IMODE((seed / "main.py").stat().st_mode) == 0o644
    assert os.access(seed / "run.sh", os.X_OK)
    assert os.readlink(seed / "self") == "main.py"
    assert os.readlink(seed / "venv/bin/python") == "/usr/bin/python3", "a link is text, wherever it leads"
    assert (seed / "hollow").is_dir()
    assert (seed / "main.py").stat().st_mtime == 1_500_000_000, "compiled modules are checked against it"
    assert (seed / "data.txt").stat().st_mtime_ns == (seed / "sub").stat().st_mtime_ns == EPOCH_NS
    assert (seed / ".git" / "HEAD").exists(), "a git directory may be what a terminal task is about"
    assert not list(seed.rglob("secret"))
    candidate = take(workspace)
    assert candidate.workspace == workspace.pristine.digest
    replaced = {item["path"]: item["reason"] for item in workspace.facts["left_out_at_start"]}
    assert replaced["data.txt"] == "replaced by a public asset"
    assert "link" in replaced["venv/bin/python"]


def test_without_the_flag_the_image_brings_nothing(build: Build, image: Path) -> None:
    workspace = build(ROW | {"environment": FROM_IMAGE | {"materialize_workdir_from_image": False}}, FILES)
    assert not (workspace.seed / "main.py").exists()


def test_a_link_to_the_directory_is_followed_inside_the_image(build: Build, image: Path) -> None:
    workspace = build(ROW | {"environment": FROM_IMAGE | {"workdir": "/srv"}}, FILES)
    assert (workspace.seed / "main.py").exists()


def test_an_image_without_the_directory_is_refused(build: Build, image: Path) -> None:
    with pytest.raises(PackError, match="no such directory"):
        build(ROW | {"environment": FROM_IMAGE | {"workdir": "/nowhere"}}, FILES)
    with pytest.raises(PackError, match="not a directory"):
        build(ROW | {"environment": FROM_IMAGE | {"workdir": "/app/main.py/x"}}, FILES)


def test_an_image_nobody_has_is_an_infrastructure_fault(build: Build, image: Path) -> None:
    with pytest.raises(SandboxUnavailable):
        build(ROW | {"environment": FROM_IMAGE | {"image": "tasks/none:1"}}, FILES)


def test_an_image_larger_than_a_workspace_is_refused(build: Build, image: Path) -> None:
    with pytest.raises(PackError, match="limit of a workspace"):
        build(ROW | {"environment": FROM_IMAGE}, FILES, limits=MaterializationLimits(files=12))


def test_an_image_with_a_file_where_the_task_file_must_be_is_refused(build: Build, image: Path, tmp_path: Path) -> None:
    write_files(image, {"app/task.json": "theirs"})
    images.default_store().import_image(f"dir:{image}", "tasks/app:1")
    with pytest.raises(ConfigError, match="task_file"):
        build(ROW | {"environment": FROM_IMAGE}, FILES)


def test_an_images_directory_as_repository_has_no_history(build: Build, image: Path) -> None:
    need_git()
    environment = {"image": "tasks/app:1", "workdir": "/app"}
    workspace = build(repo_row("org/name", assets=[], environment=environment), FILES)
    seed = workspace.seed
    assert git(seed, "status", "--porcelain") == b""
    assert git(seed, "log", "--all", "--format=%s") == b"Base commit\n"
    tracked = git(seed, "ls-files").decode().split()
    assert "main.py" in tracked
    assert "native.so" not in tracked, "what the image's rules ignore is there, and ignored"
    assert (seed / "native.so").exists()
    assert not list(seed.rglob("hidden.pyc"))
    assert not (seed / "lib" / ".git").exists()
    assert not any(b"future commits" in path.read_bytes() for path in seed.rglob("*") if path.is_file())
    assert not take(workspace).delta
    write_files(seed, {"native.so": "rebuilt\n", "other.so": "new\n", "main.py": "fixed\n"})
    delta = take(workspace).delta
    assert delta is not None
    assert delta.paths == ("main.py", "native.so")


class Engine:
    """The part of a container engine's backend that hands out an image's directory: here any tar file at all."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive

    @asynccontextmanager
    async def workdir_tar(self, reference: str, workdir: str) -> Any:
        descriptor = os.open(self.archive, os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def archive(path: Path, *members: tuple[str, str | bytes]) -> Path:
    """A tar file; `-> x` makes a link, `=> x` a hard link, `| ` a FIFO."""
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            if data[:3] in (b"-> ", b"=> "):
                info.type = tarfile.SYMTYPE if data[:1] == b"-" else tarfile.LNKTYPE
                info.linkname, data = data[3:].decode(), b""
            elif data == b"| ":
                info.type, data = tarfile.FIFOTYPE, b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def built_from(engine: Any, tmp_path: Path, store: CandidateStore) -> Path:
    environment = TaskEnvironment(image="tasks/app:1", workdir="/app", materialize_workdir_from_image=True)
    view = ResourceView(Component.AGENT, ())
    request = WorkspaceRequest("t", CandidateKind.WORKSPACE, view, environment)
    (tmp_path / "staging").mkdir()
    return asyncio.run(build_workspace(request, tmp_path / "staging", store, engine)).seed


def test_an_engines_archive_is_unpacked(tmp_path: Path, store: CandidateStore) -> None:
    made = archive(
        tmp_path / "a.tar", ("./a/b.txt", "b"), ("./l", "-> a/b.txt"), ("./h", "=> ./a/b.txt"), ("./p", "| ")
    )
    seed = built_from(Engine(made), tmp_path, store)
    assert (seed / "a" / "b.txt").read_text() == (seed / "h").read_text() == "b"
    assert os.readlink(seed / "l") == "a/b.txt"
    assert not (seed / "p").exists()
    assert stat.S_IMODE((seed / "a" / "b.txt").stat().st_mode) == 0o644


HOSTILE = {
    "parent": (("../escaped", "x"),),
    "through a link": (("d", "-> OUTSIDE"), ("d/escaped", "x")),
    "hard link": (("h", "=> ../../secret"),),
    "hard link through a link": (("d", "-> OUTSIDE"), ("h", "=> d/secret")),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_reaches_nothing_outside(tmp_path: Path, store: CandidateStore, case: str) -> None:
    outside = write_files(tmp_path / "outside", {"secret": "the host's\n"})
    write_files(tmp_path, {"secret": "the host's\n"})
    members = [(name, content.replace("OUTSIDE", str(outside))) for name, content in HOSTILE[case]]
    made = archive(tmp_path / "a.tar", *members)
    try:
        seed = built_from(Engine(made), tmp_path, store)
        assert not any(
            b"the host's" in path.read_bytes() for path in seed.rglob("*") if path.is_file() and not path.is_symlink()
        )
    except ConfigError:
        pass
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert not list(tmp_path.glob("escaped"))


@pytest.mark.parametrize("case", HOSTILE)
def test_positive_control_a_trusting_reader_follows_the_same_archive_outside(tmp_path: Path, case: str) -> None:
    outside = write_files(tmp_path / "outside", {"secret": "the host's\n"})
    write_files(tmp_path, {"secret": "the host's\n"})
    members = [(name, content.replace("OUTSIDE", str(outside))) for name, content in HOSTILE[case]]
    (target := tmp_path / "staging" / "target").mkdir(parents=True)
    with tarfile.open(archive(tmp_path / "a.tar", *members)) as tar:
        tar.extractall(target, filter="fully_trusted")
    escaped = [*outside.glob("escaped"), *(tmp_path / "staging").glob("escaped")]
    read = target / "h"
    assert escaped or read.read_text() == "the host's\n"
