"""The files an image brings are read without running anything of it."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import AsyncExitStack

import anyio
import pytest
from tests.docker.engine import IMAGE, Imaged, docker, existing_volumes, own_containers, said, volumes_of

from securebench.errors import ConfigError, SandboxUnavailable
from securebench.sandboxes.base import MIB, WorkdirSource
from securebench.sandboxes.docker import DockerSandbox

MADE = f"securebench-workdir:{os.getpid()}"


@pytest.fixture(scope="module")
def image(sandbox: Imaged) -> Iterator[str]:
    """An image with a work directory, a volume in it, and a program that would leave a trace if it were run."""
    script = "mkdir -p /repo/src && cd /repo && echo one > src/a && ln -s a src/b && : > empty && chmod 750 src/a"
    name = f"securebench-workdir-{os.getpid()}"
    said("run", f"--name={name}", "--pull=never", "--network=none", IMAGE, "/bin/sh", "-c", script)
    changes = ["--change=VOLUME /repo/src", '--change=ENTRYPOINT ["/bin/sh", "-c", "touch /repo/ran"]']
    said("commit", *changes, name, MADE)
    said("rm", "--force", "--volumes", name)
    yield MADE
    docker("image", "rm", "--force", MADE)


def _members(sandbox: DockerSandbox, image: str, workdir: str, limit: int = 64 * MIB) -> dict[str, tarfile.TarInfo]:
    async def main() -> dict[str, tarfile.TarInfo]:
        async with sandbox.workdir_tar(image, workdir, limit) as descriptor:
            with os.fdopen(os.dup(descriptor), "rb") as file, tarfile.open(fileobj=file) as archive:
                return {member.name.strip("./") or ".": member for member in archive}

    return anyio.run(main)


@pytest.fixture
def unchanged(sandbox: Imaged, image: str) -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert own_containers() == []
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("workdir", ["/repo", "//repo/./"])
def test_work_directory_arrives_as_the_image_has_it(sandbox: Imaged, image: str, workdir: str) -> None:
    assert isinstance(sandbox.real, WorkdirSource)
    members = _members(sandbox.real, image, workdir)
    assert set(members) == {".", "empty", "src", "src/a", "src/b"}
    assert (members["src/a"].size, members["src/a"].mode & 0o777) == (4, 0o750)
    assert members["src/b"].linkname == "a"


def test_nothing_of_the_image_runs_and_nothing_remains(sandbox: Imaged, image: str) -> None:
    async def main() -> list[str]:
        async with sandbox.real.workdir_tar(image, "/repo"):
            (container,) = own_containers()
            assert said("inspect", "--format={{.State.Status}}", container) == "created"
            return volumes_of(container)

    volumes = anyio.run(main)
    assert volumes, "the control: the image declares one"
    assert not set(volumes) & existing_volumes()
    assert own_containers() == []


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("workdir", ["/no/such", "/repo/empty", "relative", "/repo/../etc", "/re\0po"])
def test_directory_the_image_does_not_have_is_refused(sandbox: Imaged, image: str, workdir: str) -> None:
    with pytest.raises(ConfigError, match="director"):
        _members(sandbox.real, image, workdir)


@pytest.mark.usefixtures("unchanged")
def test_more_than_the_limit_is_refused(sandbox: Imaged, image: str) -> None:
    assert _members(sandbox.real, image, "/etc")  # the control
    with pytest.raises(ConfigError, match="larger than"):
        _members(sandbox.real, image, "/usr", limit=MIB)


@pytest.mark.usefixtures("unchanged")
def test_missing_image_says_how_to_get_it(sandbox: Imaged) -> None:
    with pytest.raises(SandboxUnavailable, match="not on this host") as refused:
        _members(sandbox.real, "no-such-image:1", "/repo")
    assert "docker pull" in refused.value.remedy


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("delay", [0.05, 0.3])
def test_cancellation_leaves_nothing(sandbox: Imaged, delay: float) -> None:
    async def main() -> None:
        with anyio.move_on_after(delay):
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(sandbox.real.workdir_tar(IMAGE, "/"))
                await anyio.sleep(60)

    anyio.run(main)
