"""The data files of tools: those that come along are complete, and a wrong one is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.harnesses.toy_registry import integrity, toy_tool

from securebench.errors import ConfigError, IntegrityError
from securebench.harnesses.tools.description import Build, load_tool, read_tool, tool_names
from securebench.harnesses.tools.npm import close_versions, parse_dependency

MACHINES = ("x86_64", "aarch64")


def test_codex_and_claude_code_come_along() -> None:
    assert tool_names() == ("claude_code", "codex")


@pytest.mark.parametrize("name", ["claude_code", "codex"])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_default_version_is_pinned_for_every_build_it_has(name: str, machine: str) -> None:
    tool = load_tool(name)
    native = frozenset(build.dependency for build in tool.builds if build.dependency)
    for libc in tool.libcs(machine):
        build = tool.build_for(machine, libc, native)
        assert build is not None
        assert build.dependency is not None, "the default version is a native program"
        suffix = build.dependency.removeprefix(tool.package).removeprefix("-")
        keys = {f"{build.dependency}@{tool.version}", f"{tool.package}@{tool.version}-{suffix}"}
        assert keys & set(tool.pinned), keys


@pytest.mark.parametrize("name", ["claude_code", "codex"])
def test_every_runtime_is_pinned(name: str) -> None:
    tool = load_tool(name)
    runtimes = [build.runtime for build in tool.builds if build.runtime]
    assert all(f"{runtime.package}@{runtime.version}" in tool.pinned for runtime in runtimes)


def test_the_docs_name_the_default_versions() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tools.md").read_text()
    for name in tool_names():
        assert f"| `{name}` | {load_tool(name).version} |" in page


def test_a_version_without_platform_packages_uses_the_package_itself() -> None:
    build = load_tool("claude_code").build_for("x86_64", "glibc", frozenset({"@img/sharp-linux-x64"}))
    assert isinstance(build, Build)
    assert (build.dependency, build.entry) == (None, ("cli.js",))
    assert build.runtime is not None
    assert load_tool("claude_code").build_for("x86_64", "musl", frozenset()) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"packag": "x"}, "unknown key 'packag' (did you mean 'package'?)"),
        ({"version": "latest"}, "expected an exact version"),
        ({"version": "1"}, "expected an exact version"),
        ({"package": "../x"}, "expected the name of an npm package"),
        ({"package": "--global"}, "expected the name of an npm package"),
        ({"package": "https://x/y.tgz"}, "expected the name of an npm package"),
        ({"tool": "../toy"}, "expected a name of lower case letters"),
        ({"builds": []}, "at least 1 item"),
        ({"pinned": {"toy-cli@1.0.0": "sha1-AAAA"}}, "begins with sha512-"),
        ({"pinned": {"toy-cli": integrity(b"x")}}, "expected the name of an npm package"),
    ],
)
def test_wrong_description_is_refused(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    value = json.loads(toy_tool().model_dump_json(exclude_none=True)) | change
    (tmp_path / "toy.yaml").write_text(json.dumps(value, indent=1))
    with pytest.raises(ConfigError) as caught:
        read_tool(tmp_path / "toy.yaml")
    assert problem in str(caught.value)
    assert "toy.yaml:" in str(caught.value)


@pytest.mark.parametrize("entry", ["/bin/sh", "../x", "a/../../x"])
def test_entry_that_leads_outside_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="path"):
        toy_tool(builds=[{"machine": "x86_64", "libc": "any", "entry": [entry]}])


def test_build_that_could_never_be_used_is_refused() -> None:
    build = {"machine": "x86_64", "libc": "any", "entry": ["x"]}
    with pytest.raises(ValueError, match="could never be used"):
        toy_tool(builds=[build, {**build, "entry": ["y"]}])


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read: no such file"):
        read_tool(tmp_path / "none.yaml")


def test_dependencies_are_one_exact_version() -> None:
    assert parse_dependency("@a/b-x64", "1.2.3") == ("@a/b-x64", "1.2.3")
    assert parse_dependency("@a/b-x64", "npm:@a/b@1.2.3-x64") == ("@a/b", "1.2.3-x64")
    with pytest.raises(IntegrityError):
        parse_dependency("@a/b-x64", "npm:@a/b")


def test_close_versions_are_those_around_and_the_newest() -> None:
    known = ["1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "10.0.0", "9.0.0", "not a version"]
    assert close_versions("1.3.0", known) == ["1.0.0", "1.2.0", "1.10.0", "2.0.0", "10.0.0"]
    assert close_versions("99.0.0", known) == ["9.0.0", "10.0.0"]
    assert close_versions("nightly", known) == ["2.0.0", "9.0.0", "10.0.0"]
    assert close_versions("1.0.0", []) == []
