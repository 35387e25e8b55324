"""Tool overlays: an agent program at one version, fetched once, mounted read-only where the agent runs.

Rules kept here:

- an exact version that is in the cache is used without asking anyone;
- a tarball's own bytes must have the integrity the registry promised and, where the tool's data file pins that
  package, the integrity written there;
- a cached tree is compared byte for byte with its record before its first use in this process, and again whenever
  the kernel says that something in it changed;
- nothing of a package runs outside a sandbox."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import anyio

from securebench._fs import open_directory, settle_times
from securebench.errors import ConfigError, IntegrityError
from securebench.harnesses.tools.cache import OverlayRecord, Package, ToolCache, summary_of
from securebench.harnesses.tools.description import Build, Libc, Tool, check_spec, is_exact, load_tool, machine_name
from securebench.harnesses.tools.integrity import integrity_of, verify_integrity
from securebench.harnesses.tools.npm import Npm, OnProgress, Published, parse_dependency
from securebench.harnesses.tools.tarball import unpack
from securebench.sandboxes.base import Bind

MOUNTS = "/securebench-tools"
_PROGRAM, _RUNTIME = "program", "runtime"  # directories of a tree
_verified: dict[Path, object] = {}  # trees compared with their record by this process → their signature then


@dataclass(frozen=True, slots=True)
class Overlay:
    """A tool that is there and whole. `program` is its argv prefix as seen inside the sandbox."""

    tool: str
    version: str
    libc: Libc
    directory: Path
    program: tuple[str, ...]
    version_argument: str
    integrity: Mapping[str, str]  # package@version → integrity
    digest: str

    @property
    def bind(self) -> Bind:
        return Bind(self.directory, f"{MOUNTS}/{self.tool}")

    @property
    def label(self) -> str:
        return f"{self.tool} {self.version}"


def quiet(_: str) -> None:
    """Progress that nobody watches."""


async def install_overlay(
    name: str,
    version: str | None,
    on_progress: OnProgress = quiet,
    *,
    libc: Libc | None = None,
    cache: ToolCache | None = None,
) -> Overlay:
    """A tool that comes with SecureBench, at a version, a tag such as `latest`, or its own default (None).

    `libc` chooses among the builds of a tool that has several; else the first is taken. Raises ConfigError for an
    unknown tool, version or machine, IntegrityError for bytes that are not those promised, SandboxUnavailable without
    npm, InfrastructureError when the registry cannot be reached, StoreError when the cache cannot be written."""
    return await install_tool(load_tool(name), version, on_progress, libc=libc, cache=cache)


async def install_tool(
    tool: Tool,
    version: str | None,
    on_progress: OnProgress = quiet,
    *,
    libc: Libc | None = None,
    cache: ToolCache | None = None,
) -> Overlay:
    """`install_overlay` for a tool described elsewhere."""
    cache = cache or ToolCache()
    spec = check_spec(version or tool.version)
    machine = machine_name()
    libcs = tool.libcs(machine)
    wanted = libc or libcs[0]
    if wanted not in libcs:
        raise ConfigError(f"there is no {wanted} build of {tool.tool} for {machine}; there are: {', '.join(libcs)}")
    fetch = _Fetch(tool, spec, machine, wanted, cache, on_progress)
    found = fetch.cached(spec) if is_exact(spec) else None
    if found is None:
        async with cache.fetching(tool.tool, on_progress):
            found = (fetch.cached(spec) if is_exact(spec) else None) or await fetch.run()
    overlay, record = _overlay(cache, *found), found[1]
    _verify_pinned(tool, record.packages)
    await _verify_once(cache, overlay, record, on_progress)
    return overlay


async def verify_overlay(overlay: Overlay, cache: ToolCache | None = None) -> None:
    """Compare every byte of an overlay with its record. Raises IntegrityError when one differs."""
    cache = cache or ToolCache(overlay.directory.parents[2])
    record = dict(cache.entries()).get(overlay.digest)
    if record is None:
        raise IntegrityError(f"{overlay.directory} has lost its record; fetch it again: securebench tools install")
    await anyio.to_thread.run_sync(cache.verify, overlay.digest, record)


class _Fetch:
    """One tool at one version on its way into the cache. The caller holds the fetch lock."""

    def __init__(
        self, tool: Tool, spec: str, machine: str, libc: Libc, cache: ToolCache, on_progress: OnProgress
    ) -> None:
        self._tool, self._spec = tool, spec
        self._machine, self._libc = machine, libc
        self._cache = cache
        self._on_progress = on_progress

    def cached(self, version: str) -> tuple[str, OverlayRecord] | None:
        return self._cache.find(self._tool.tool, version, self._machine, self._libc)

    async def run(self) -> tuple[str, OverlayRecord]:
        with self._cache.workspace() as work:
            (work / "npm").mkdir()
            npm = Npm(work / "npm")
            main = await npm.view(self._tool.package, self._spec)
            if found := self.cached(main.version):
                return found  # a tag that names what is there
            build = self._build(main)
            record = await self._make(npm, main, build, work / "overlay")
            return self._cache.add(work / "overlay", record), record

    def _build(self, main: Published) -> Build:
        build = self._tool.build_for(self._machine, self._libc, frozenset(main.dependencies))
        if build is None:
            raise ConfigError(f"{main.label} has no {self._libc} build for {self._machine}; choose another version")
        return build

    async def _make(self, npm: Npm, main: Published, build: Build, place: Path) -> OverlayRecord:
        tree = place / "tree"
        tree.mkdir(parents=True)
        source = main
        if build.dependency is not None:
            source = await npm.view(*parse_dependency(build.dependency, main.dependencies[build.dependency]))
        packages = [await self._bring(npm, source, tree, _PROGRAM)]
        program = [f"{_PROGRAM}/{_entry(tree / _PROGRAM, build.entry, source)}"]
        if build.runtime is not None:
            node = await npm.view(build.runtime.package, build.runtime.version)
            packages.append(await self._bring(npm, node, tree, _RUNTIME))
            program.insert(0, f"{_RUNTIME}/{_entry(tree / _RUNTIME, (build.runtime.entry,), node)}")
        for word in program:
            (tree / word).chmod(0o755)
        tree.chmod(0o755)
        settle_times(tree)
        self._on_progress(f"checking {self._tool.tool} {main.version}")
        summary = await anyio.to_thread.run_sync(summary_of, tree)
        return OverlayRecord(
            tool=self._tool.tool,
            version=main.version,
            machine=self._machine,
            libc=self._libc,
            program=tuple(program),
            version_argument=self._tool.version_argument,
            packages=tuple(packages),
            tree=summary.digest,
            files=summary.files,
            bytes=summary.bytes,
        )

    async def _bring(self, npm: Npm, published: Published, tree: Path, at: str) -> Package:
        """Fetch, judge and unpack one package into its directory of the tree."""
        tarball = await npm.pack(published, self._on_progress)
        self._on_progress(f"unpacking {published.label}")
        package = await anyio.to_thread.run_sync(_unpack, self._tool, published, tarball, tree, at)
        npm.forget()
        return package


def _unpack(tool: Tool, published: Published, tarball: Path, tree: Path, at: str) -> Package:
    descriptor = os.open(tarball, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = integrity_of(descriptor)
        verify_integrity(published.label, found, published.integrity, "the registry")
        package = Package(name=published.package, version=published.version, integrity=found, at=at)
        _verify_pinned(tool, (package,))
        (tree / at).mkdir()
        (tree / at).chmod(0o755)
        with open_directory(tree / at) as root:
            unpack(descriptor, root, published.label)
    finally:
        os.close(descriptor)
    return package


def _verify_pinned(tool: Tool, packages: tuple[Package, ...]) -> None:
    for package in packages:
        label = f"{package.name}@{package.version}"
        if label in tool.pinned:
            verify_integrity(label, package.integrity, tool.pinned[label], f"the data file of {tool.tool}")


def _entry(package: Path, candidates: tuple[str, ...], published: Published) -> str:
    for candidate in candidates:
        if (package / candidate).is_file():
            return candidate
    raise ConfigError(
        f"{published.label} holds none of {', '.join(candidates)}; SecureBench does not know how it is laid out: "
        "choose another version"
    )


def _overlay(cache: ToolCache, digest: str, record: OverlayRecord) -> Overlay:
    return Overlay(
        tool=record.tool,
        version=record.version,
        libc=record.libc,
        directory=cache.tree(digest),
        program=tuple(f"{MOUNTS}/{record.tool}/{word}" for word in record.program),
        version_argument=record.version_argument,
        integrity=MappingProxyType({f"{item.name}@{item.version}": item.integrity for item in record.packages}),
        digest=digest,
    )


async def _verify_once(cache: ToolCache, overlay: Overlay, record: OverlayRecord, on_progress: OnProgress) -> None:
    before = cache.signature(overlay.digest, record)
    if before and _verified.get(overlay.directory) == before:
        return
    on_progress(f"checking {overlay.label}")
    await anyio.to_thread.run_sync(cache.verify, overlay.digest, record)
    _verified[overlay.directory] = before
