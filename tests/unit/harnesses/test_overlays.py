"""Tools fetched by the real npm client from a registry on loopback, whose packages and claims are ours to choose."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.harnesses.toy_registry import NATIVE, NODE, PACKAGE, Registry, integrity, program, tarball, toy_tool
from tests.unit.images.builders import file, symlink

from securebench.errors import ConfigError, InfrastructureError, IntegrityError, SandboxUnavailable, StoreError
from securebench.harnesses.overlays import Overlay, install_overlay, install_tool, verify_overlay
from securebench.harnesses.tools import npm
from securebench.harnesses.tools.cache import ToolCache
from securebench.harnesses.tools.description import Tool, machine_name
from securebench.sandboxes.base import Bind


def install(cache: ToolCache, version: str | None = None, tool: Tool | None = None, **more: Any) -> Overlay:
    said: list[str] = more.pop("said", [])

    async def main() -> Overlay:
        return await install_tool(tool or toy_tool(), version, said.append, cache=cache, **more)

    return anyio.run(main)


def leftovers(cache: ToolCache) -> list[Path]:
    return list((cache.root / "tmp").iterdir())


def native(**more: Any) -> Tool:
    """A tool with a platform package, and a script for a runtime in older versions."""
    machine = machine_name()
    builds = [
        {"machine": machine, "libc": "glibc", "dependency": NATIVE, "entry": ["gone", "bin/toy"]},
        {"machine": machine, "libc": "musl", "dependency": f"{NATIVE}-musl", "entry": ["bin/toy"]},
        {
            "machine": machine,
            "libc": "glibc",
            "entry": ["cli.js"],
            "runtime": {"package": NODE, "version": "22.0.0", "entry": "bin/node"},
        },
    ]
    return toy_tool(builds=builds, **more)


class TestFetching:
    def test_a_tool_is_fetched_once_and_described(self, registry: Registry, cache: ToolCache) -> None:
        data = program("toy 1.0.0")
        registry.publish(PACKAGE, "1.0.0", data)
        said: list[str] = []
        overlay = install(cache, said=said)
        assert (overlay.tool, overlay.version, overlay.libc) == ("toy", "1.0.0", "any")
        assert overlay.program == ("/securebench-tools/toy/program/bin/toy",)
        assert overlay.bind == Bind(overlay.directory, "/securebench-tools/toy")
        assert overlay.integrity == {"toy-cli@1.0.0": integrity(data)}
        assert overlay.directory == cache.root / "sha256" / overlay.digest.removeprefix("sha256:") / "tree"
        steps = list(dict.fromkeys(text.partition(":")[0] for text in said))
        assert steps == ["fetching toy-cli@1.0.0", "unpacking toy-cli@1.0.0", "checking toy 1.0.0"]
        asked = registry.asked.copy()
        assert install(cache, "1.0.0") == overlay
        assert registry.asked == asked, "a version that is there is used without asking anyone"
        assert registry.fetches() == 1
        assert not leftovers(cache)

    def test_no_script_of_a_package_runs(self, registry: Registry, cache: ToolCache) -> None:
        marker = cache.root.parent / "ran"
        scripts = dict.fromkeys(("preinstall", "install", "postinstall", "prepare", "prepack"), f"touch {marker}")
        registry.publish(PACKAGE, "1.0.0", program("toy"), scripts=scripts, hasInstallScript=True)
        install(cache)
        assert not marker.exists()

    def test_what_is_kept_is_readable_by_all_whatever_the_umask_is(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        before = os.umask(0o077)
        try:
            overlay = install(cache)
        finally:
            os.umask(before)
        place = overlay.directory
        modes = {str(path.relative_to(place)): stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*")}
        assert modes.pop("program/package.json") == 0o644
        assert set(modes.values()) == {0o755}
        assert {stat.S_IMODE(path.stat().st_mode) for path in (place, place.parent, place.parent.parent)} == {0o755}

    def test_equal_content_has_an_equal_digest_elsewhere(self, registry: Registry, tmp_path: Path) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        assert install(ToolCache(tmp_path / "a")).digest == install(ToolCache(tmp_path / "b")).digest

    def test_latest_is_the_version_it_means_and_asked_for_each_time(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy 1.0.0"))
        registry.publish(PACKAGE, "1.5.0", program("toy 1.5.0"))
        assert install(cache, "latest").version == "1.5.0"
        assert install(cache, "latest").version == "1.5.0"
        assert registry.fetches() == 1
        registry.publish(PACKAGE, "2.0.0", program("toy 2.0.0"))
        assert install(cache, "latest").version == "2.0.0"
        assert install(cache, "1.5.0").version == "1.5.0"

    def test_the_platform_package_is_found_through_its_alias(self, registry: Registry, cache: ToolCache) -> None:
        alias = {NATIVE: f"npm:{PACKAGE}@1.0.0-native", f"{NATIVE}-musl": "1.0.0"}
        registry.publish(PACKAGE, "1.0.0-native", program("native"))
        registry.publish(f"{NATIVE}-musl", "1.0.0", program("musl"))
        registry.publish(PACKAGE, "1.0.0", tarball(file("package/x", b"x")), optionalDependencies=alias)
        overlay = install(cache, tool=native())
        assert (overlay.version, overlay.libc) == ("1.0.0", "glibc")
        assert list(overlay.integrity) == [f"{PACKAGE}@1.0.0-native"]
        other = install(cache, tool=native(), libc="musl")
        assert list(other.integrity) == [f"{NATIVE}-musl@1.0.0"]
        assert other.digest != overlay.digest

    def test_a_script_brings_its_runtime_along(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "0.9.0", tarball(file("package/cli.js", b"js")))
        registry.publish(NODE, "22.0.0", tarball(file("node/bin/node", b"node")))
        overlay = install(cache, "0.9.0", tool=native())
        inside = "/securebench-tools/toy"
        assert overlay.program == (f"{inside}/runtime/bin/node", f"{inside}/program/cli.js")
        assert set(overlay.integrity) == {f"{PACKAGE}@0.9.0", f"{NODE}@22.0.0"}
        assert stat.S_IMODE((overlay.directory / "runtime/bin/node").stat().st_mode) == 0o755


class TestRefusals:
    def test_unknown_version_names_close_ones(self, registry: Registry, cache: ToolCache) -> None:
        for version in ("1.0.0", "1.1.0", "1.3.0", "1.4.0-beta", "2.0.0", "3.0.0"):
            registry.publish(PACKAGE, version, program("toy"))
        with pytest.raises(
            ConfigError, match=r"no version '1\.2\.0'.*: 1\.0\.0, 1\.1\.0, 1\.3\.0, 2\.0\.0, 3\.0\.0, latest"
        ):
            install(cache, "1.2.0")

    def test_unknown_tag_and_package(self, registry: Registry, cache: ToolCache) -> None:
        with pytest.raises(ConfigError, match="has no package toy-cli"):
            install(cache, "latest")
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        with pytest.raises(ConfigError, match=r"no version 'nightly'.*1\.0\.0, latest"):
            install(cache, "nightly")

    @pytest.mark.parametrize(
        "spec", ["1.x", "^1.0.0", "file:/etc", "../x", "--json", "git+ssh://x", "1.0.0 || 2", "x y"]
    )
    def test_only_versions_and_tags_reach_npm(self, cache: ToolCache, spec: str) -> None:
        with pytest.raises(ConfigError, match="is not a version"):
            install(cache, spec)

    def test_machine_without_a_build(self, cache: ToolCache) -> None:
        other = "aarch64" if machine_name() == "x86_64" else "x86_64"
        tool = toy_tool(builds=[{"machine": other, "libc": "any", "entry": ["x"]}])
        with pytest.raises(
            ConfigError, match=f"no build of toy for {machine_name()} machines; there are some for {other}"
        ):
            install(cache, tool=tool)

    def test_version_without_that_build(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        with pytest.raises(ConfigError, match=r"toy-cli@1\.0\.0 has no musl build"):
            install(cache, tool=native(), libc="musl")

    def test_unknown_layout(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", tarball(file("package/other", b"x")))
        with pytest.raises(ConfigError, match="holds none of bin/toy"):
            install(cache)
        assert not leftovers(cache)
        assert not list(cache.entries())

    def test_unknown_tool_is_named_with_the_close_one(self) -> None:
        with pytest.raises(ConfigError, match="did you mean 'codex'"):
            anyio.run(install_overlay, "codx", None)

    def test_without_npm_the_remedy_is_said(self, cache: ToolCache, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(SandboxUnavailable, match=r"npm is not installed(.|\n)*Install Node.js and npm"):
            install(cache)

    def test_without_network_a_cached_version_still_works(
        self, registry: Registry, cache: ToolCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        install(cache)
        monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/secret-path")
        with pytest.raises(InfrastructureError, match=r"could not fetch toy-cli .*ECONNREFUSED.*tools list") as caught:
            install(cache, "latest")
        assert "secret-path" not in str(caught.value), "an address may hold a credential"
        assert install(cache).version == "1.0.0"

    def test_cache_that_cannot_be_written(self, registry: Registry, tmp_path: Path) -> None:
        (tmp_path / "tools").write_text("a file")
        with pytest.raises(StoreError, match="tool cache"):
            install(ToolCache(tmp_path / "tools"))


class TestIntegrity:
    def test_bytes_that_are_not_those_published(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"), says=integrity(b"other"))
        with pytest.raises(IntegrityError, match=r"toy-cli@1\.0\.0"):
            install(cache)
        assert not list(cache.entries())
        assert not leftovers(cache)

    def test_registry_without_a_strong_integrity(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        del registry.published[PACKAGE]["1.0.0"]["dist"]["integrity"]
        with pytest.raises(IntegrityError, match="gives no integrity"):
            install(cache)

    def test_registry_that_replaced_a_pinned_version(self, registry: Registry, cache: ToolCache) -> None:
        """The registry is consistent with itself; only our data file knows better."""
        registry.publish(PACKAGE, "1.0.0", program("replaced"))
        tool = toy_tool(pinned={f"{PACKAGE}@1.0.0": integrity(program("toy"))})
        with pytest.raises(IntegrityError, match="the data file of toy promised"):
            install(cache, tool=tool)
        assert not list(cache.entries())
        assert install(cache).version == "1.0.0", "the control: without the pin it is taken"
        with pytest.raises(IntegrityError, match="the data file of toy promised"):
            install(cache, tool=tool)

    def test_npm_that_does_not_check_is_checked(
        self, cache: ToolCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A client that lies: it hands out other bytes than the registry promised and says all is well."""
        (tmp_path / "evil.tgz").write_bytes(program("evil"))
        (tmp_path / "bin").mkdir()
        view = f'{{"version": "1.0.0", "dist.integrity": "{integrity(program("toy"))}"}}'
        script = f"""#!/bin/sh
if [ "$1" = view ]; then echo '{view}'; exit; fi
for word; do case "$word" in --pack-destination=*) cp {tmp_path}/evil.tgz "${{word#*=}}/toy.tgz";; esac; done
"""
        (tmp_path / "bin" / "npm").write_text(script)
        (tmp_path / "bin" / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        with pytest.raises(IntegrityError, match="the registry promised"):
            install(cache)
        (tmp_path / "evil.tgz").write_bytes(program("toy"))
        assert install(cache).version == "1.0.0", "the control: the promised bytes are taken"

    def test_hostile_package_leaves_nothing(self, registry: Registry, cache: ToolCache) -> None:
        registry.publish(PACKAGE, "1.0.0", tarball(file("package/bin/toy", b"x"), symlink("package/l", "/etc/passwd")))
        with pytest.raises(
            IntegrityError, match=r"toy-cli@1\.0\.0 cannot be unpacked: member package/l: a symbolic link"
        ):
            install(cache)
        assert not list(cache.entries())
        assert not leftovers(cache)

    @pytest.mark.parametrize(
        "alias", ["npm:/etc/passwd@1.0.0", "file:../x", "^1.0.0", "npm:toy-cli@latest", "git+x://y"]
    )
    def test_dependency_that_is_not_one_exact_version(self, registry: Registry, cache: ToolCache, alias: str) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"), optionalDependencies={NATIVE: alias})
        with pytest.raises(IntegrityError, match="one exact version was expected"):
            install(cache, tool=native())


def _append(overlay: Overlay) -> None:
    with (overlay.directory / "program/bin/toy").open("a") as file:
        file.write("# more\n")


def _same_size_and_time(overlay: Overlay) -> None:
    place = overlay.directory / "program/bin/toy"
    before = place.stat()
    place.write_bytes(place.read_bytes().replace(b"echo", b"exec"))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))


def _add(overlay: Overlay) -> None:
    (overlay.directory / "program/added").write_text("x")


def _link(overlay: Overlay) -> None:
    (overlay.directory / "program/package.json").unlink()
    (overlay.directory / "program/package.json").symlink_to("/etc/passwd")


def _mode(overlay: Overlay) -> None:
    (overlay.directory / "program/package.json").chmod(0o755)


def _remove(overlay: Overlay) -> None:
    (overlay.directory / "program/package.json").unlink()


def _take_tree(overlay: Overlay) -> None:
    overlay.directory.rename(overlay.directory.with_name("elsewhere"))


class TestChangedCache:
    @pytest.mark.parametrize("change", [_append, _same_size_and_time, _add, _link, _mode, _remove, _take_tree])
    def test_changed_tree_is_refused_also_in_the_process_that_saw_it_whole(
        self, registry: Registry, cache: ToolCache, change: Any
    ) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        overlay = install(cache)
        anyio.run(verify_overlay, overlay)
        change(overlay)
        with pytest.raises(
            IntegrityError, match=r"was changed after it was fetched; remove it with `securebench tools rm"
        ):
            install(cache)
        with pytest.raises(IntegrityError):
            anyio.run(verify_overlay, overlay)

    def test_changed_record_is_no_record_and_the_tool_is_fetched_again(
        self, registry: Registry, cache: ToolCache
    ) -> None:
        registry.publish(PACKAGE, "1.0.0", program("toy"))
        overlay = install(cache)
        record = overlay.directory.parent / "overlay.json"
        record.write_text(record.read_text().replace("bin/toy", "bin/yot"))
        _append(overlay)
        with pytest.raises(IntegrityError, match="lost its record"):
            anyio.run(verify_overlay, overlay)
        assert install(cache) == overlay
        anyio.run(verify_overlay, overlay)
        assert registry.fetches() == 2
        assert [record is not None for _, record in cache.entries()] == [True]


def test_a_registry_that_says_very_much_is_cut_short_at_once() -> None:
    """Looking for addresses in it takes the square of its length."""
    began = time.process_time()
    code, summary = npm._error({"error": {"code": "E500", "summary": "a" * 1_000_000}}, b"")
    assert time.process_time() - began < 20
    assert (code, len(summary)) == ("E500", 306)
