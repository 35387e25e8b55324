"""The host sandbox says that it isolates nothing, and refuses whoever needs more."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes.base import (
    Command,
    Limits,
    Outcome,
    SandboxSpec,
    Scratch,
    resolve_sandbox_host_path,
    run_once,
)
from securebench.sandboxes.host import HostSandbox

NOTHING = frozenset[str]()


def test_it_refuses_a_spec_that_requires_a_guarantee() -> None:
    with pytest.raises(SandboxUnavailable, match="isolates nothing"):
        anyio.run(run_once, HostSandbox(), SandboxSpec(), Command(("true",)))


def test_it_advertises_no_guarantee() -> None:
    assert anyio.run(HostSandbox().probe).guarantees == frozenset()


def test_commands_share_a_seeded_scratch_that_is_read_through_a_descriptor(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("hello")

    async def story() -> bytes:
        spec = SandboxSpec(mounts=(Scratch("/work", seed=tmp_path),), cwd="/work", require=frozenset())
        async with HostSandbox().open(spec) as session:
            await session.run(Command(("cp", "in.txt", "out.txt")))
            with pytest.raises(SandboxError, match="stop"):
                session.scratch("/work")
            await session.stop()
            descriptor = os.open("out.txt", os.O_RDONLY, dir_fd=session.scratch("/work"))
            try:
                return os.read(descriptor, 100)
            finally:
                os.close(descriptor)

    assert anyio.run(story) == b"hello"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt"]


def test_a_command_that_takes_too_long_is_ended() -> None:
    spec = SandboxSpec(limits=Limits(wall_seconds=0.2), require=frozenset())
    assert anyio.run(run_once, HostSandbox(), spec, Command(("sleep", "20"))).outcome is Outcome.TIMEOUT


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/a/../../etc", "link/x", "link", "a\0b"])
def test_paths_that_lead_outside_are_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(ConfigError):
        resolve_sandbox_host_path(tmp_path, path)


@pytest.mark.parametrize("path", ["a", "/a", "a/b", "//a/b", "."])
def test_paths_beneath_the_root_are_found(tmp_path: Path, path: str) -> None:
    assert resolve_sandbox_host_path(tmp_path, path).is_relative_to(tmp_path)
