"""`securebench tools`: fetch agent programs ahead of a run, list and remove them."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from securebench.cli._text import one_line, visible
from securebench.errors import ConfigError, IntegrityError

if TYPE_CHECKING:
    from securebench.harnesses.overlays import Overlay
    from securebench.harnesses.tools.cache import OverlayRecord, ToolCache

SHORT = len("sha256:") + 12


@click.group()
def command() -> None:
    """Fetch agent programs at pinned versions, so that runs need no network for them.

    A run fetches what it needs by itself; on a machine without network, copy the directory that `tools list --json`
    names as its root."""


@command.command("install")
@click.argument("names", metavar="NAME[@VERSION]...", nargs=-1, required=True)
@click.option("--all-builds", is_flag=True, help="Also the builds for images with another C library.")
@click.option("--json", "as_json", is_flag=True, help="Print the tools as JSON.")
def install(names: tuple[str, ...], all_builds: bool, as_json: bool) -> None:
    """Fetch tools such as codex or claude_code@2.1.197 with npm, unless they are there.

    Without VERSION it is the one this version of SecureBench was tested with; `latest` is what that means today."""
    import anyio

    progress = _Progress()
    try:
        overlays = anyio.run(_install, names, all_builds, progress)
    finally:
        progress.done()
    if as_json:
        click.echo(json.dumps({"tools": [_installed(overlay) for overlay in overlays]}))
        return
    for overlay in overlays:
        click.echo(f"{overlay.tool}@{overlay.version}  {_build(overlay.libc)}  {overlay.digest[:SHORT]}")


async def _install(names: tuple[str, ...], all_builds: bool, progress: _Progress) -> list[Overlay]:
    from securebench.harnesses.overlays import install_overlay
    from securebench.harnesses.tools.description import load_tool, machine_name

    tools = [(load_tool(name.partition("@")[0]), name.partition("@")[2] or None) for name in names]
    overlays = []
    for tool, version in tools:
        first, *others = tool.libcs(machine_name())
        overlays.append(await install_overlay(tool.tool, version, progress, libc=first))
        for libc in others if all_builds else []:
            # The version that was found, so that a tag cannot mean two.
            overlays.append(await install_overlay(tool.tool, overlays[-1].version, progress, libc=libc))
    return overlays


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the tools as JSON.")
@click.option("--verify", is_flag=True, help="Also check every file against what was recorded (exit 1 if one differs).")
def list_(as_json: bool, verify: bool) -> int:
    """List the tools that are there."""
    from securebench.harnesses.tools.cache import ToolCache

    cache = ToolCache()
    found = list(cache.entries())
    damaged = [digest for digest, record in found if record is None or (verify and not _whole(cache, digest, record))]
    if as_json:
        tools = [_recorded(cache, digest, record) for digest, record in found if record]
        click.echo(json.dumps({"root": str(cache.root), "tools": tools, "damaged": damaged}))
    elif not found:
        click.echo("no tools; fetch one: securebench tools install codex", err=True)
    else:
        labels = {digest: record.label if record else "-" for digest, record in found}
        width = max(map(len, labels.values()))
        for digest, record in found:
            about = f"{_build(record.libc):6}  {record.bytes / 1e6:6.0f} MB" if record else "damaged"
            click.echo(f"{labels[digest]:{width}}  {digest[:SHORT]}  {about}")
    return 1 if damaged else 0


@command.command("rm")
@click.argument("name", metavar="NAME@VERSION")
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
def rm(name: str, as_json: bool) -> None:
    """Remove every build of a tool at a version, or one by its digest.

    A run that is using it will fail."""
    from securebench.harnesses.tools.cache import ToolCache

    cache = ToolCache()
    gone = [digest for digest, record in cache.entries() if _is_meant(name, digest, record)]
    if not gone:
        raise ConfigError(f"{name!r} is not there; see: securebench tools list")
    for digest in gone:
        cache.remove(digest)
    if as_json:
        click.echo(json.dumps({"removed": gone}))
        return
    for digest in gone:
        click.echo(f"removed {digest}")


def _is_meant(name: str, digest: str, record: OverlayRecord | None) -> bool:
    by_digest = name.startswith("sha256:") and len(name) >= SHORT and digest.startswith(name)
    return by_digest or (record is not None and record.label == name)


def _whole(cache: ToolCache, digest: str, record: OverlayRecord) -> bool:
    try:
        cache.verify(digest, record)
    except IntegrityError as error:
        click.echo(f"error: {visible(str(error))}", err=True)
        return False
    return True


def _build(libc: str) -> str:
    return "static" if libc == "any" else libc


def _installed(overlay: Overlay) -> dict[str, Any]:
    return {
        "tool": overlay.tool,
        "version": overlay.version,
        "libc": overlay.libc,
        "digest": overlay.digest,
        "directory": str(overlay.directory),
        "program": list(overlay.program),
        "integrity": dict(overlay.integrity),
    }


def _recorded(cache: ToolCache, digest: str, record: OverlayRecord) -> dict[str, Any]:
    return {
        "digest": digest,
        "directory": os.fspath(cache.tree(digest)),
        **record.model_dump(mode="json", exclude={"format"}),
    }


class _Progress:
    """A line on standard error that is kept up to date on a terminal, or written now and then elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = float("-inf")
        self._step = ""
        self._shown = False

    def __call__(self, text: str) -> None:
        now, step = time.monotonic(), text.partition(":")[0]
        if not self._terminal and step == self._step and now - self._last < 5:
            return
        self._last, self._step, self._shown = now, step, True
        line = one_line(text, 78)
        click.echo(f"\r{line:78}" if self._terminal else line, err=True, nl=not self._terminal)

    def done(self) -> None:
        if self._terminal and self._shown:
            click.echo(f"\r{'':78}\r", err=True, nl=False)
