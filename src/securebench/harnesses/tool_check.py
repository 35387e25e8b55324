"""The pre-flight of a tool: does it start where a task runs? Asked by starting it there, never by looking at it."""

from __future__ import annotations

from securebench.errors import ConfigError, InfrastructureError, SandboxUnavailable
from securebench.harnesses.overlays import Overlay, install_tool, quiet
from securebench.harnesses.tools.cache import ToolCache
from securebench.harnesses.tools.description import Tool, machine_name
from securebench.harnesses.tools.npm import OnProgress
from securebench.sandboxes.base import (
    Command,
    DirectoryRoot,
    HostRoot,
    ImageRoot,
    Limits,
    Outcome,
    Root,
    Sandbox,
    SandboxResult,
    SandboxSpec,
    run_once,
)

SECONDS = 60.0
MEMORY = 2 * 1024**3
_SAID = 400


async def check_tool(sandbox: Sandbox, root: Root, overlay: Overlay) -> str:
    """What the tool says to `--version` in that root, without network. Raises SandboxUnavailable when it cannot run."""
    spec = SandboxSpec(root=root, mounts=(overlay.bind,), limits=Limits(wall_seconds=SECONDS, memory=MEMORY))
    result = await run_once(sandbox, spec, Command((*overlay.program, overlay.version_argument)))
    said = _text(result.stdout.data)
    if result.ok and overlay.version in said:
        return said
    raise SandboxUnavailable(
        f"{overlay.label} ({_needs(overlay)}) does not run in {_name(root)} ({sandbox.name}): {_ending(result)}",
        _remedy(overlay),
    )


async def fit_tool(
    sandbox: Sandbox,
    root: Root,
    tool: Tool,
    version: str | None,
    on_progress: OnProgress = quiet,
    cache: ToolCache | None = None,
) -> tuple[Overlay, str]:
    """The build of a tool that runs in that root, and what it says to `--version`.

    Builds are tried in the order of the tool's data file, so that what a C library is needed for is seen and not
    guessed. Raises SandboxUnavailable when none runs there, and whatever `install_overlay` raises for the first."""
    refusals: list[SandboxUnavailable] = []
    for libc in tool.libcs(machine_name()):
        try:
            overlay = await install_tool(tool, version, on_progress, libc=libc, cache=cache)
        except (ConfigError, InfrastructureError) as error:
            if not refusals:
                raise
            raise SandboxUnavailable(str(refusals[0]), f"Its {libc} build could not be tried: {error}") from error
        try:
            return overlay, await check_tool(sandbox, root, overlay)
        except SandboxUnavailable as error:
            refusals.append(error)
            version = overlay.version  # a tag must not mean two versions
    raise SandboxUnavailable(str(refusals[0]), "\n".join(str(error) for error in refusals[1:]))


def _text(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())[:_SAID]


def _ending(result: SandboxResult) -> str:
    said = _text(result.stderr.data) or _text(result.stdout.data) or "it said nothing"
    how = f"exit code {result.exit_code}" if result.outcome is Outcome.EXITED else f"ended by {result.outcome}"
    return f"{how}, {said!r}"


def _needs(overlay: Overlay) -> str:
    return "a static program" if overlay.libc == "any" else f"the build for {overlay.libc}"


def _remedy(overlay: Overlay) -> str:
    if overlay.libc == "any":
        return f"It needs nothing of the image but its kind of processor; try another version of {overlay.tool}."
    return (
        f"It needs {overlay.libc} in the image (where that is missing, a system says that the program itself is): "
        f"use an image with it, or another version of {overlay.tool}."
    )


def _name(root: Root) -> str:
    match root:
        case HostRoot():
            return "this host's root file system"
        case DirectoryRoot(path):
            return f"the root file system {path}"
        case ImageRoot(reference):
            return f"image {reference}"
