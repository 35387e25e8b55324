"""`PolicySandbox`: any backend, behind an allow and deny list of executables, with every attempt on record.

This is an audit trail and a guard against mistakes in packs, not isolation: a program that is allowed can do what
another program does. What a process may really do is decided by the sandbox underneath."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from securebench.errors import ConfigError
from securebench.sandboxes.base import Capabilities, Command, Root, Sandbox, SandboxResult, SandboxSpec, Session

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "busybox"})
LAUNCHERS = frozenset(
    {
        "env",
        "nice",
        "nohup",
        "setsid",
        "stdbuf",
        "timeout",
        "xargs",
        "sudo",
        "su",
        "exec",
        "chroot",
        "unshare",
        "ionice",
    }
    | {"taskset", "time", "watch", "script", "find", "flock", "parallel", "setpriv", "runuser", "nsenter", "ld.so"}
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a command may run, and the rule that decided."""

    executable: str
    allowed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class CommandPolicy:
    """Decides by the name of the executable. Pure.

    1. A denied name is refused.
    2. A shell with a command string is refused, because what it would run cannot be seen, unless that is allowed.
    3. A program that only starts another one is refused unless it is allowed by name.
    4. With an allow list, what is not on it is refused.
    """

    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    allow_shell_strings: bool = False

    def decide(self, argv: tuple[str, ...]) -> Decision:
        name = PurePosixPath(argv[0]).name if argv else ""
        if not name:
            return Decision(name, False, "no executable")
        if name in self.deny:
            return Decision(name, False, "on the deny list")
        if not self.allow_shell_strings and name in SHELLS and any(_takes_string(word) for word in argv[1:]):
            return Decision(name, False, "a shell string hides what it runs")
        if self.allow is not None:
            return Decision(
                name, name in self.allow, "on the allow list" if name in self.allow else "not on the allow list"
            )
        if name in LAUNCHERS:
            return Decision(name, False, "it starts another program; allow it by name to use it")
        return Decision(name, True, "not on the deny list")


def _takes_string(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and "c" in word


OnAttempt = Callable[[Decision], None]


class PolicySandbox:
    """Wraps a backend: refused commands never reach it, every attempt reaches `on_attempt`."""

    def __init__(self, inner: Sandbox, policy: CommandPolicy, on_attempt: OnAttempt) -> None:
        self._inner, self._policy, self._on_attempt = inner, policy, on_attempt

    @property
    def name(self) -> str:
        return self._inner.name

    async def offers(self, root: Root) -> bool:
        return await self._inner.offers(root)

    async def clean(self) -> list[str]:
        return await self._inner.clean()

    async def probe(self) -> Capabilities:
        """What the backend underneath gives; a policy adds no guarantee."""
        return await self._inner.probe()

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        """A session of the backend underneath."""
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        async with self._inner.open(spec) as session:
            yield _PolicySession(session, self._policy, self._on_attempt)


class _PolicySession:
    def __init__(self, inner: Session, policy: CommandPolicy, on_attempt: OnAttempt) -> None:
        self._inner, self._policy, self._on_attempt = inner, policy, on_attempt

    async def run(self, command: Command) -> SandboxResult:
        """Run a command the policy allows. Raises ConfigError for one it refuses: that is the configuration's doing."""
        decision = self._policy.decide(command.argv)
        self._on_attempt(decision)
        if not decision.allowed:
            raise ConfigError(f"command {decision.executable!r} is refused by the command policy: {decision.rule}")
        return await self._inner.run(command)

    async def stop(self) -> None:
        await self._inner.stop()

    def scratch(self, target: str) -> int:
        return self._inner.scratch(target)

    def listener(self, port: int) -> socket.socket:
        return self._inner.listener(port)
