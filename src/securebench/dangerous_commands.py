"""Commands a task may need at verification time that ask for more than a plain sandbox gives, and what for.

One table: executable name → the Linux capability it needs. The policy decides by configuration before anything
runs; a refusal is the configuration's doing and never counts against a candidate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType

from securebench.errors import ConfigError

DANGEROUS_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "chroot": "CAP_SYS_CHROOT",
        "chown": "CAP_CHOWN",
        "date": "CAP_SYS_TIME",
        "hwclock": "CAP_SYS_TIME",
        "ifconfig": "CAP_NET_ADMIN",
        "ip": "CAP_NET_ADMIN",
        "iptables": "CAP_NET_ADMIN",
        "mknod": "CAP_MKNOD",
        "mount": "CAP_SYS_ADMIN",
        "nft": "CAP_NET_ADMIN",
        "ping": "CAP_NET_RAW",
        "setcap": "CAP_SETFCAP",
        "strace": "CAP_SYS_PTRACE",
        "tcpdump": "CAP_NET_RAW",
        "umount": "CAP_SYS_ADMIN",
        "useradd": "CAP_CHOWN",
    }
)


@dataclass(frozen=True, slots=True)
class VerificationPolicy:
    """`verification` of the tester YAML: may a checker have dangerous commands, and which never."""

    disallow_dangerous_commands: bool = True
    deny_commands: frozenset[str] = frozenset()

    def capabilities_for(self, needed: Iterable[str]) -> frozenset[str]:
        """The capabilities those commands need, and no more. Raises ConfigError for one that is not allowed."""
        granted = set()
        denied = {PurePosixPath(command).name for command in self.deny_commands}
        for spelled in needed:
            command = PurePosixPath(spelled).name  # a path to it is the same command
            if command in denied:
                raise ConfigError(f"command {command!r} is in verification.deny_commands, but the task needs it")
            capability = DANGEROUS_COMMANDS.get(command)
            if capability is None:
                continue
            if self.disallow_dangerous_commands:
                raise ConfigError(
                    f"the task needs {command!r} ({capability}); "
                    "set verification.disallow_dangerous_commands: false to allow it"
                )
            granted.add(capability)
        return frozenset(granted)
