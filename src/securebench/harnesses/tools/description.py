"""What a tool is: its package, the version to use, and which build of it runs where. Read from a data file."""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from securebench._schema import ClosedModel, RelativePath, Schema, suggest
from securebench._yaml import parse
from securebench.errors import ConfigError, os_reason
from securebench.harnesses.tools.integrity import parse_integrity

Libc = Literal["any", "glibc", "musl"]
"""The C library a build needs; `any` for a static program."""

_PACKAGE = re.compile(r"(@[a-z0-9][a-z0-9._-]{0,99}/)?[a-z0-9][a-z0-9._-]{0,99}")
_EXACT = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_TOOL = re.compile(r"[a-z][a-z0-9_]{0,31}")


def is_exact(spec: str) -> bool:
    """Whether it is one version, such as 1.2.3 or 1.2.3-beta.1, and not a name for one."""
    return len(spec) <= 128 and _EXACT.fullmatch(spec) is not None


def machine_name() -> str:
    """The kind of processor of this host, in the words of data files."""
    machine = platform.machine()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def check_spec(spec: str) -> str:
    """A version or a dist-tag such as `latest`; nothing else reaches npm. Raises ConfigError."""
    if not is_exact(spec) and not _TAG.fullmatch(spec):
        raise ConfigError(f"{spec[:80]!r} is not a version: give an exact one, such as 1.2.3, or a tag, such as latest")
    return spec


def package_name(text: str) -> str:
    """A name as registries give it; never a path, an address or an option. Raises ValueError."""
    if not _PACKAGE.fullmatch(text):
        raise ValueError("expected the name of an npm package")
    return text


def _tool_name(text: str) -> str:
    if not _TOOL.fullmatch(text):
        raise ValueError("expected a name of lower case letters, digits and _")
    return text


def _exact(text: str) -> str:
    if not is_exact(text):
        raise ValueError("expected an exact version, such as 1.2.3")
    return text


def _pinned(value: dict[str, str]) -> dict[str, str]:
    for key, integrity in value.items():
        name, _, version = key.rpartition("@")
        package_name(name)
        _exact(version)
        parse_integrity(integrity)
    return value


PackageName = Annotated[str, AfterValidator(package_name)]
Version = Annotated[str, AfterValidator(_exact)]


class Runtime(ClosedModel):
    """An interpreter that comes along, so that the image needs none."""

    package: PackageName
    version: Version
    entry: RelativePath


class Build(ClosedModel):
    """Where the program for one kind of machine is."""

    machine: Literal["x86_64", "aarch64"]
    libc: Libc
    dependency: PackageName | None = None  # among the package's optional dependencies; else the package itself
    entry: Annotated[tuple[RelativePath, ...], Field(min_length=1)]  # the first that is there
    runtime: Runtime | None = None


class Tool(ClosedModel):
    """One agent program."""

    tool: Annotated[str, AfterValidator(_tool_name)]
    package: PackageName
    version: Version
    version_argument: str = "--version"
    builds: Annotated[tuple[Build, ...], Field(min_length=1)]
    pinned: Annotated[dict[str, str], AfterValidator(_pinned)] = Field(
        default_factory=dict
    )  # package@version → integrity

    @model_validator(mode="after")
    def _alternatives_are_reachable(self) -> Tool:
        kinds = [(build.machine, build.libc, build.dependency) for build in self.builds]
        if len(set(kinds)) != len(kinds):
            raise ValueError("two builds have the same machine, libc and dependency; the second could never be used")
        return self

    def libcs(self, machine: str) -> tuple[Libc, ...]:
        """The C libraries there are builds for, in the order to try. Raises ConfigError for another machine."""
        found = tuple(dict.fromkeys(build.libc for build in self.builds if build.machine == machine))
        if not found:
            known = ", ".join(sorted({build.machine for build in self.builds}))
            raise ConfigError(f"there is no build of {self.tool} for {machine} machines; there are some for {known}")
        return found

    def build_for(self, machine: str, libc: Libc, dependencies: frozenset[str]) -> Build | None:
        """The first build that a version with these optional dependencies has."""
        for build in self.builds:
            fits = build.dependency is None or build.dependency in dependencies
            if (build.machine, build.libc) == (machine, libc) and fits:
                return build
        return None


_SCHEMA: Schema[Tool] = Schema(Tool)
_HERE = Path(__file__).parent


def tool_names() -> tuple[str, ...]:
    """The tools that come with SecureBench."""
    return tuple(sorted(path.stem for path in _HERE.glob("*.yaml")))


@cache
def load_tool(name: str) -> Tool:
    """A tool that comes with SecureBench. Raises ConfigError for an unknown name."""
    if name not in tool_names():
        known = ", ".join(tool_names())
        raise ConfigError(f"there is no tool {name[:80]!r}{suggest(name, tool_names())}; there are: {known}")
    return read_tool(_HERE / f"{name}.yaml")


def read_tool(path: Path) -> Tool:
    """The tool a file describes. Raises ConfigError with every problem of the file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} {os_reason(error)}") from error
    checked = _SCHEMA.check(parse(data, str(path)))
    if isinstance(checked, list):
        raise ConfigError(checked)
    return checked
