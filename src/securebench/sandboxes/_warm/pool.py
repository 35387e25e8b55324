"""The fork servers of one engine: one for each kind of room that is asked for, more where several are used at once.

A server runs one command at a time and is given back between two. One that was lost, still holds something of its last
command, or has been used often enough, is not used again; of those that nobody uses, the longest unused go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from anyio.abc import TaskGroup

from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes._warm.server import ForkServer
from securebench.sandboxes.base import PythonProgram, SandboxSpec

USES = 500
"""How often a server is used. All its processes share the secret that their hashes and addresses are made of."""


_REMEMBERED = 4096


@dataclass(slots=True)
class Pool:
    """`tasks` is where servers live; at most `most_idle` of them stay while nobody uses them."""

    tasks: TaskGroup
    most_idle: int
    started: int = 0
    _idle: OrderedDict[Hashable, list[ForkServer]] = field(default_factory=OrderedDict)
    _keys: dict[ForkServer, Hashable] = field(default_factory=dict)
    _asked: dict[Hashable, None] = field(default_factory=dict)  # in this order

    async def lease(self, host: Host, spec: SandboxSpec, program: PythonProgram) -> ForkServer:
        """A server that nobody else uses until it is given back. Raises SandboxError."""
        key = _key(spec, program)
        waiting = self._idle.get(key, [])
        while waiting:
            server = waiting.pop()
            if server.lost is None and server.clean:
                return server
            self.discard(server)
        server = ForkServer(host, spec, program)
        await self.tasks.start(server.live)
        self.started += 1
        self._keys[server] = key
        return server

    def is_worth_it(self, spec: SandboxSpec, program: PythonProgram | None) -> bool:
        """Whether a server pays. What is mounted may be one task's own files: asked for once, it may never be again."""
        if not spec.mounts or program is None:
            return True
        key = _key(spec, program)
        known = key in self._asked
        self._asked[key] = None
        while len(self._asked) > _REMEMBERED:
            self._asked.pop(next(iter(self._asked)))
        return known

    def give_back(self, server: ForkServer) -> None:
        """Nothing runs there any more; whoever cannot say so discards it instead."""
        key = self._keys[server]
        if server.lost is not None or server.used >= USES:
            self.discard(server)
            return
        self._idle.setdefault(key, []).append(server)
        self._idle.move_to_end(key)
        while sum(map(len, self._idle.values())) > self.most_idle:
            oldest = next(iter(self._idle))
            if self._idle[oldest]:
                self.discard(self._idle[oldest].pop(0))
            if not self._idle[oldest]:
                del self._idle[oldest]

    def discard(self, server: ForkServer) -> None:
        self._keys.pop(server, None)
        server.discard()


def _key(spec: SandboxSpec, program: PythonProgram) -> Hashable:
    """What decides what a server is. How long a command may take is watched from outside."""
    env = tuple(sorted(spec.env.items()))
    limits = replace(spec.limits, wall_seconds=0.0, output=0)
    return spec.root, spec.mounts, env, spec.cwd, spec.network, limits, spec.user, program
