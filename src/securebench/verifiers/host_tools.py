"""Where tools of this host are needed beside an image: a checker's interpreter, and git for the text of a patch."""

from __future__ import annotations

from securebench.errors import SandboxUnavailable
from securebench.sandboxes.base import HostRoot, Sandbox
from securebench.sandboxes.select import make_sandbox


async def host_sandbox(sandbox: Sandbox) -> Sandbox:
    """A sandbox with this host's tools, never with those of an image an agent worked in. Raises SandboxUnavailable."""
    if await sandbox.offers(HostRoot()):
        return sandbox
    other = make_sandbox("bubblewrap")
    if not (await other.probe()).usable:
        raise SandboxUnavailable(
            "checkers and patches need tools of this host, which only bubblewrap can show them",
            "- install bubblewrap (apt-get install bubblewrap), or declare the checker's assurance as shared_process",
        )
    return other
