"""The programs of this host that the bubblewrap backend is made of, and what they can do."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from securebench._proc import run_tool
from securebench.errors import SandboxUnavailable
from securebench.sandboxes._bubblewrap.cgroups import find_controllers
from securebench.sandboxes._bubblewrap.identity import Identity

_TOOL_SECONDS = 60.0
INSTALL_BWRAP = "Install bubblewrap: sudo apt-get install bubblewrap (or the same package of your distribution)."


@dataclass(frozen=True, slots=True)
class Host:
    """`bwrap` is an absolute path, so that nothing depends on PATH later."""

    bwrap: str
    version: str
    sha256: str
    disable_userns: bool
    image: str | None = None  # the digest of the image in use, for the fingerprint

    def fingerprint(self, identity: Identity, seccomp: str) -> Mapping[str, str]:
        """What decides how strong a sandbox made here is."""
        controllers = find_controllers()
        return {
            "backend": "bubblewrap",
            "bwrap": self.version,
            "bwrap_sha256": self.sha256,
            "kernel": platform.release(),
            "machine": platform.machine(),
            "seccomp_sha256": seccomp,
            "cgroup": "none" if controllers is None else controllers.mode,
            "uid": identity.mode,
            **({} if self.image is None else {"image": self.image}),
        }


async def find_host() -> Host:
    """Look the programs up and ask them what they can do. Raises SandboxUnavailable with the remedy."""
    bwrap = _which("bwrap", INSTALL_BWRAP)
    mode = Path(bwrap).stat().st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise SandboxUnavailable(
            f"{bwrap} is setuid, which has had holes and is not needed", f"Remove the bit: sudo chmod ug-s {bwrap}"
        )
    version = await run_tool([bwrap, "--version"], _TOOL_SECONDS)
    options = await run_tool([bwrap, "--help"], _TOOL_SECONDS)
    text = options.stdout + options.stderr
    for needed in (b"--json-status-fd", b"--size", b"--perms"):
        if needed not in text:
            raise SandboxUnavailable(
                f"{bwrap} is too old: it has no {needed.decode()}", "Install bubblewrap 0.8 or later."
            )
    return Host(
        bwrap=bwrap,
        version=version.stdout.decode("utf-8", "replace").strip().removeprefix("bubblewrap "),
        sha256=hashlib.sha256(Path(bwrap).read_bytes()).hexdigest(),
        disable_userns=b"--disable-userns" in text,
    )


_PATH = os.pathsep.join(("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"))


def _which(name: str, remedy: str) -> str:
    found = shutil.which(name, path=_PATH) or shutil.which(name)
    if found is None:
        raise SandboxUnavailable(f"{name} is not installed", remedy)
    return str(Path(found).resolve())
