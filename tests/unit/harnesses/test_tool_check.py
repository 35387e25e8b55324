"""The pre-flight: a tool is started where a task runs, and one that cannot run there is named with the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap
from tests.unit.harnesses.toy_registry import NATIVE, PACKAGE, Registry, program, tarball, toy_tool
from tests.unit.images.builders import file

from securebench.errors import InfrastructureError, SandboxUnavailable
from securebench.harnesses.overlays import Overlay, install_tool
from securebench.harnesses.tool_check import check_tool, fit_tool
from securebench.harnesses.tools.cache import ToolCache
from securebench.harnesses.tools.description import Tool, machine_name
from securebench.sandboxes.base import DirectoryRoot, HostRoot, Root
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

MISSING = "#!/lib/no-such-loader\n"


def script(says: str, shell: str = "#!/bin/sh\n", then: str = "") -> bytes:
    return tarball(file("package/bin/toy", f"{shell}echo '{says}'\n{then}".encode(), mode=0o755))


@pytest.fixture
def overlay_of(registry: Registry, cache: ToolCache) -> Any:
    need_bubblewrap()

    def make(data: bytes) -> Overlay:
        registry.publish(PACKAGE, "1.0.0", data)

        async def main() -> Overlay:
            return await install_tool(toy_tool(), None, cache=cache)

        return anyio.run(main)

    return make


def check(overlay: Overlay, root: Root | None = None) -> str:
    return anyio.run(check_tool, BubblewrapSandbox(), root or HostRoot(), overlay)


def test_what_the_tool_says_is_returned(overlay_of: Any) -> None:
    assert check(overlay_of(program("toy 1.0.0"))) == "toy 1.0.0"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (script("toy 1.0.0", MISSING), "exit code 127"),
        (script("toy 1.0.0", then="echo GLIBC_2.99 not found >&2; exit 1\n"), "exit code 1, 'GLIBC_2.99 not found'"),
        (script("toy 9.9.9"), "exit code 0, 'toy 9.9.9'"),
        (script("toy 1.0.0", then="kill -SEGV $$\n"), "ended by signalled, 'toy 1.0.0'"),
    ],
    ids=["no loader", "exits", "another version", "crashes"],
)
def test_tool_that_does_not_run_is_named_with_the_image_and_its_words(overlay_of: Any, data: bytes, said: str) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        check(overlay_of(data))
    assert "toy 1.0.0 (a static program) does not run in this host's root file system (bubblewrap)" in str(caught.value)
    assert said in str(caught.value)


def test_image_without_what_the_tool_needs(overlay_of: Any, tmp_path: Path) -> None:
    (tmp_path / "root" / "etc").mkdir(parents=True)
    with pytest.raises(SandboxUnavailable, match=f"the root file system {tmp_path}/root"):
        check(overlay_of(program("toy 1.0.0")), DirectoryRoot(tmp_path / "root"))


def two_builds() -> Tool:
    machine = machine_name()
    return toy_tool(
        builds=[
            {"machine": machine, "libc": "glibc", "dependency": NATIVE, "entry": ["bin/toy"]},
            {"machine": machine, "libc": "musl", "dependency": f"{NATIVE}-musl", "entry": ["bin/toy"]},
        ]
    )


def fit(cache: ToolCache, version: str | None = None) -> tuple[Overlay, str]:
    need_bubblewrap()

    async def main() -> tuple[Overlay, str]:
        return await fit_tool(BubblewrapSandbox(), HostRoot(), two_builds(), version, cache=cache)

    return anyio.run(main)


def publish(registry: Registry, glibc: bytes, musl: bytes | None) -> None:
    names = {NATIVE: "1.0.0"} | ({f"{NATIVE}-musl": "1.0.0"} if musl else {})
    registry.publish(PACKAGE, "1.0.0", program("x"), optionalDependencies=names)
    registry.publish(NATIVE, "1.0.0", glibc)
    if musl:
        registry.publish(f"{NATIVE}-musl", "1.0.0", musl)


def test_the_first_build_that_runs_is_taken_and_no_other_is_fetched(registry: Registry, cache: ToolCache) -> None:
    publish(registry, program("toy 1.0.0"), program("toy 1.0.0"))
    overlay, said = fit(cache)
    assert (overlay.libc, said, registry.fetches()) == ("glibc", "toy 1.0.0", 1)


def test_the_next_build_is_tried_where_the_first_does_not_run(registry: Registry, cache: ToolCache) -> None:
    publish(registry, script("toy 1.0.0", MISSING), program("toy 1.0.0"))
    overlay, _ = fit(cache, "latest")
    assert overlay.libc == "musl"


def test_all_that_were_tried_are_named(registry: Registry, cache: ToolCache) -> None:
    publish(registry, script("toy 1.0.0", MISSING), script("toy 1.0.0", MISSING))
    with pytest.raises(SandboxUnavailable, match=r"build for glibc\)(.|\n)*build for musl\)"):
        fit(cache)


def test_a_version_with_one_build_says_so(registry: Registry, cache: ToolCache) -> None:
    publish(registry, script("toy 1.0.0", MISSING), None)
    with pytest.raises(
        SandboxUnavailable, match=r"build for glibc\)(.|\n)*musl build could not be tried: .*has no musl"
    ):
        fit(cache)


def test_failure_to_fetch_the_first_is_its_own(cache: ToolCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    with pytest.raises(InfrastructureError, match="npm"):
        fit(cache)
