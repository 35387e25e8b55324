"""The real Codex and Claude Code at their pinned versions, mounted where agents run, without any network.

They are fetched by scripts/ci-agents; without it these tests are skipped, and in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import anyio
import pytest
from tests.docker.engine import IMAGE, docker
from tests.e2e.workbench import need_bubblewrap

from securebench.errors import SandboxUnavailable
from securebench.harnesses.overlays import Overlay, install_overlay, verify_overlay
from securebench.harnesses.tool_check import check_tool, fit_tool
from securebench.harnesses.tools.cache import ToolCache
from securebench.harnesses.tools.description import Libc, load_tool, machine_name
from securebench.sandboxes.base import (
    Command,
    DirectoryRoot,
    HostRoot,
    ImageRoot,
    Root,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    Scratch,
    run_once,
)
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.sandboxes.docker import DockerSandbox

pytestmark = pytest.mark.slow
SAYS = {"codex": "codex-cli {}", "claude_code": "{} (Claude Code)"}


def missing(reason: str) -> NoReturn:
    (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(reason)


def overlay_of(name: str, libc: Libc | None = None) -> Overlay:
    tool = load_tool(name)
    wanted = libc or tool.libcs(machine_name())[0]
    if ToolCache().find(name, tool.version, machine_name(), wanted) is None:
        missing(f"{name}@{tool.version} ({wanted}) is not in the tool cache: run scripts/ci-agents")

    async def main() -> Overlay:
        return await install_overlay(name, None, libc=wanted)

    return anyio.run(main)


def enterable(directory: Path) -> Path:
    """Sandboxes run as another user."""
    for path in (directory, *directory.parents[:3]):
        if path.name.startswith(("pytest-", "test_", "popen-")):
            path.chmod(0o755)
    return directory


@pytest.fixture(params=["bubblewrap", "docker"])
def place(request: pytest.FixtureRequest) -> tuple[Sandbox, Root]:
    """A backend and what tasks run in there."""
    if request.param == "bubblewrap":
        need_bubblewrap()
        return BubblewrapSandbox(), HostRoot()
    sandbox = DockerSandbox()
    if not anyio.run(sandbox.probe).usable or docker("image", "inspect", IMAGE).returncode:
        missing(f"docker or its image {IMAGE} is not usable here: run scripts/ci-docker")
    return sandbox, ImageRoot(IMAGE)


@pytest.mark.parametrize("name", ["codex", "claude_code"])
def test_the_pinned_tool_runs_and_says_its_version(name: str, place: tuple[Sandbox, Root]) -> None:
    overlay = overlay_of(name)
    assert anyio.run(check_tool, *place, overlay) == SAYS[name].format(load_tool(name).version)


@pytest.mark.parametrize("name", ["codex", "claude_code"])
def test_every_byte_is_as_recorded_and_from_the_pinned_package(name: str) -> None:
    overlay = overlay_of(name)
    anyio.run(verify_overlay, overlay)
    assert dict(overlay.integrity).items() <= load_tool(name).pinned.items()


def test_every_build_of_a_tool_for_this_machine_is_pinned() -> None:
    for name in SAYS:
        for libc in load_tool(name).libcs(machine_name()):
            assert dict(overlay_of(name, libc).integrity).items() <= load_tool(name).pinned.items()


def run(place: tuple[Sandbox, Root], spec_mounts: tuple[object, ...], script: str) -> SandboxResult:
    sandbox, root = place
    spec = SandboxSpec(root=root, mounts=spec_mounts)  # type: ignore[arg-type]

    async def main() -> SandboxResult:
        return await run_once(sandbox, spec, Command(("/bin/sh", "-c", script)))

    return anyio.run(main)


@pytest.mark.parametrize("name", ["codex", "claude_code"])
def test_the_tool_cannot_be_changed_from_inside(name: str, place: tuple[Sandbox, Root]) -> None:
    overlay = overlay_of(name)
    program, target = overlay.program[0], overlay.bind.target
    attack = f"for p in {target}/planted {program}.new; do echo x > $p; done; rm -f {program}; mv {program} /tmp/x; chmod 777 {target}; ls {target}"
    result = run(place, (overlay.bind,), attack)
    assert result.stdout.data == b"program\n"
    assert result.stderr.data.count(b"Read-only file system") >= 4, result.stderr.data
    anyio.run(verify_overlay, overlay)


def test_it_is_the_mount_that_refuses_and_not_the_owner(place: tuple[Sandbox, Root], tmp_path: Path) -> None:
    """The control of the test above: a directory anyone may write to, and the same commands where writing is allowed."""
    tree = enterable(tmp_path) / "tree"
    tree.mkdir()
    tree.chmod(0o777)
    overlay = Overlay("toy", "1.0.0", "any", tree, (), "--version", {}, "sha256:0")
    refused = run(place, (overlay.bind,), f"echo x > {overlay.bind.target}/planted")
    assert not refused.ok
    assert b"Read-only file system" in refused.stderr.data
    assert not list(tree.iterdir())
    allowed = run(place, (Scratch("/work"),), "echo x > /work/planted && cat /work/planted")
    assert allowed.stdout.data == b"x\n", allowed.stderr.data


def bare_root(tmp_path: Path) -> Path:
    root = enterable(tmp_path) / "root"
    (root / "lib").mkdir(parents=True)
    return root


def fitted(name: str, root: Path) -> tuple[Overlay, str]:
    need_bubblewrap()
    return anyio.run(fit_tool, BubblewrapSandbox(), DirectoryRoot(root), load_tool(name), None)


def test_codex_runs_in_a_root_file_system_with_nothing_in_it(tmp_path: Path) -> None:
    overlay_of("codex")
    overlay, said = fitted("codex", bare_root(tmp_path))
    assert (overlay.libc, said) == ("any", SAYS["codex"].format(overlay.version))


def test_claude_code_uses_its_musl_build_where_only_musl_is(tmp_path: Path) -> None:
    loader = Path(f"/lib/ld-musl-{machine_name()}.so.1")
    if not loader.exists():
        pytest.skip("this host has no musl (apt-get install musl); not every distribution has it")
    overlay_of("claude_code")
    overlay_of("claude_code", "musl")
    root = bare_root(tmp_path)
    shutil.copy(loader.resolve(), root / "lib" / loader.name)
    overlay, said = fitted("claude_code", root)
    assert (overlay.libc, said) == ("musl", SAYS["claude_code"].format(overlay.version))


def test_claude_code_is_refused_where_there_is_no_c_library(tmp_path: Path) -> None:
    overlay_of("claude_code")
    overlay_of("claude_code", "musl")
    root = bare_root(tmp_path)
    with pytest.raises(SandboxUnavailable) as caught:
        fitted("claude_code", root)
    for words in (f"the root file system {root}", "needs glibc in the image", "needs musl in the image"):
        assert words in str(caught.value)
