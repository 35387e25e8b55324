"""The npm client, asked two things: what is published under a name, and the tarball of one version.

Nothing is installed and no script of a package runs. The registry is the one npm is configured with here; its
answers are data: parsed into closed values, and the tarball is judged by `integrity` and `tarball`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from securebench import _json
from securebench._json import Json
from securebench._proc import TOOL_ENV, run_tool
from securebench.errors import ConfigError, InfrastructureError, IntegrityError, SandboxUnavailable, SecureBenchError
from securebench.harnesses.tools.description import is_exact, package_name

OnProgress = Callable[[str], None]

VIEW_SECONDS = 120.0
PACK_SECONDS = 3600.0
_ANSWER = 16 * 1024 * 1024
_FIELDS = ("version", "dist.integrity", "optionalDependencies")
_UNKNOWN = frozenset({"E404", "ETARGET", "ENOVERSIONS"})
_PASSED_ON = re.compile(
    r"npm_config_.*|(http|https|all|no)_proxy|node_extra_ca_certs|ssl_cert_(file|dir)", re.IGNORECASE
)
_CODE = re.compile(r'code"?:? "?(E[A-Z0-9]+)')
_SUMMARY = re.compile(r'"summary": "([^"]+)"')
_ADDRESS = re.compile(r"[a-z+]+://\S+", re.IGNORECASE)
_OPTIONS = (
    "--json",
    "--ignore-scripts",
    "--no-update-notifier",
    "--no-audit",
    "--no-fund",
    "--no-workspaces",
    "--loglevel=error",
)
_DEFAULTS = {  # npm's own make a machine without network wait for minutes
    "npm_config_fetch_retries": "2",
    "npm_config_fetch_retry_mintimeout": "1000",
    "npm_config_fetch_retry_maxtimeout": "5000",
}


@dataclass(frozen=True, slots=True)
class Published:
    """What a registry says about one version of a package."""

    package: str
    version: str
    integrity: str
    dependencies: Mapping[str, str]  # the optional ones: name → version, or npm:OTHER@VERSION

    @property
    def label(self) -> str:
        return f"{self.package}@{self.version}"


class Npm:
    """The client with a work directory of its own, so that nothing it keeps outlives the fetch."""

    def __init__(self, work: Path, environ: Mapping[str, str] = os.environ) -> None:
        """Raises SandboxUnavailable when there is no npm."""
        path = environ.get("PATH", TOOL_ENV["PATH"])
        program = shutil.which("npm", path=path)
        if program is None:
            raise SandboxUnavailable(
                "npm is not installed, and agent programs are fetched with it",
                "Install Node.js and npm (apt-get install nodejs npm), or copy the tools directory of a machine on "
                "which `securebench tools install` was run.",
            )
        # An engine that is killed takes npm along, which else would go on writing where nobody waits for it.
        tie = shutil.which("setpriv", path=path)
        self._program = ([tie, "--pdeathsig", "KILL"] if tie else []) + [program]
        self._work = work
        kept = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}
        self._env = {**TOOL_ENV, **_DEFAULTS, "PATH": path, "HOME": environ.get("HOME", "/"), **kept}

    async def view(self, package: str, spec: str) -> Published:
        """The version that `spec` names, exact or a tag. Raises ConfigError when there is none."""
        code, answer = await self._ask(package, "view", f"{package}@{spec}", *_FIELDS)
        if code in _UNKNOWN:
            raise ConfigError(await self._no_such_version(package, spec))
        return _published(package, spec, answer)

    async def pack(self, published: Published, on_progress: OnProgress) -> Path:
        """The tarball of that version, as it came: not judged yet."""
        place = self._work / "packed"
        place.mkdir()
        code, failure = "", None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report, published.label, on_progress)
            try:
                code, _ = await self._ask(published.label, "pack", published.label, f"--pack-destination={place}")
            except SecureBenchError as error:
                failure = error  # raised below, where the task group cannot wrap it
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if code in _UNKNOWN:
            raise ConfigError(f"the registry has no {published.label}; it may have been withdrawn")
        found = list(place.iterdir())
        if len(found) != 1:
            raise InfrastructureError(f"npm made {len(found)} files of {published.label}; one tarball was expected")
        return found[0].rename(self._work / "package.tgz")

    def forget(self) -> None:
        """Remove what the last `pack` left."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()

    async def _ask(self, what: str, command: str, *words: str) -> tuple[str, Json]:
        """The code of npm's error, empty when there is none, and its answer. Raises when it could not ask."""
        limit = PACK_SECONDS if command == "pack" else VIEW_SECONDS
        argv = [*self._program, command, *words, *_OPTIONS, f"--cache={self._work / 'cache'}"]
        done = await run_tool(argv, limit, env=self._env, cwd=self._work, limit=_ANSWER)
        if done.status is None:
            raise InfrastructureError(f"npm did not fetch {what} within {limit:.0f} seconds; try again")
        try:
            answer = _json.loads(done.stdout) if done.stdout.strip() else None
        except _json.JsonError:
            answer = None
        if done.ok:
            return "", answer
        code, summary = _error(answer, done.stderr)
        if code in _UNKNOWN:
            return code, None
        if code == "EINTEGRITY":
            raise IntegrityError(f"npm refused {what}: what came does not have the integrity the registry promised")
        raise InfrastructureError(
            f"npm could not fetch {what} ({summary}). Check the network and npm's configuration; without a network, "
            "name a version that `securebench tools list` shows"
        )

    async def _no_such_version(self, package: str, spec: str) -> str:
        code, answer = await self._ask(package, "view", package, "versions", "dist-tags")
        if code:
            return f"the registry npm is configured with has no package {package}"
        known = answer if isinstance(answer, dict) else {}
        versions, tags = known.get("versions"), known.get("dist-tags")
        hints = close_versions(spec, [str(v) for v in versions] if isinstance(versions, list) else [])
        hints += sorted(tags) if isinstance(tags, dict) else []
        return f"{package} has no version {spec!r}; there are, among others: {', '.join(hints) or 'none'}"

    async def _report(self, label: str, on_progress: OnProgress) -> None:
        on_progress(f"fetching {label}")
        while True:
            await anyio.sleep(1)
            on_progress(f"fetching {label}: {_bytes_beneath(self._work / 'cache') / 1e6:.0f} MB")


def parse_dependency(name: str, text: str) -> tuple[str, str]:
    """The package and version an optional dependency stands for. Raises IntegrityError for anything inexact."""
    alias = text.removeprefix("npm:")
    package, version = (name, text) if alias == text else alias.rpartition("@")[::2]
    try:
        package_name(package)
    except ValueError:
        package = ""
    if not package or not is_exact(version):
        raise IntegrityError(f"the registry describes {name} as {text[:100]!r}; one exact version was expected")
    return package, version


def close_versions(wanted: str, versions: list[str]) -> list[str]:
    """At most four released versions around the wanted one, and the newest."""
    released = sorted((key, version) for version in versions if (key := _numbers(version)) is not None)
    target = _numbers(wanted)
    if target is None:
        return [version for _, version in released[-3:]]
    below = [version for key, version in released if key < target]
    above = [version for key, version in released if key > target]
    return list(dict.fromkeys([*below[-2:], *above[:2], *above[-1:]]))


def _numbers(version: str) -> tuple[int, ...] | None:
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12}){2}", version):
        return None
    return tuple(map(int, version.split(".")))


def _published(package: str, spec: str, answer: Json) -> Published:
    if isinstance(answer, list):
        raise ConfigError(f"{package}@{spec} names {len(answer)} versions; give one")
    # npm prints the bare value where only one of the fields is there.
    fields = answer if isinstance(answer, dict) else {"version": answer}
    version, integrity = fields.get("version"), fields.get("dist.integrity")
    dependencies = fields.get("optionalDependencies", {})
    if not isinstance(version, str) or not is_exact(version) or (is_exact(spec) and version != spec):
        raise IntegrityError(f"the registry's answer for {package}@{spec} names no such version")
    if not isinstance(integrity, str):
        raise IntegrityError(f"the registry gives no integrity for {package}@{version}; it cannot be used")
    if not isinstance(dependencies, dict) or not all(isinstance(value, str) for value in dependencies.values()):
        raise IntegrityError(f"the registry's answer for {package}@{version} is damaged: optionalDependencies")
    return Published(package, version, integrity, {name: str(value) for name, value in dependencies.items()})


def _error(answer: Json, stderr: bytes) -> tuple[str, str]:
    """Code and summary of npm's failure, without the addresses it names."""
    error = answer.get("error") if isinstance(answer, dict) else None
    error = error if isinstance(error, dict) else {}
    text = stderr.decode("utf-8", "replace")  # where clients before version 9 write it
    code = str(error.get("code") or _first(_CODE, text))
    said = str(error.get("summary") or _first(_SUMMARY, text) or text[-400:] or "it said nothing")
    summary = " ".join(_ADDRESS.sub("the registry", said[:2000]).split())[:300]
    return code, f"{code}: {summary}" if code else summary


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _bytes_beneath(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(Path(parent, name)).st_size
            except FileNotFoundError:
                continue  # npm renames as it goes
    return total
