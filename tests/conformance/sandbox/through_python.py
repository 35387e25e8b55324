"""Any command as a Python program of ours that becomes it, so that it runs in a warm room."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace

from securebench.sandboxes.base import (
    Capabilities,
    Command,
    PythonProgram,
    Root,
    SandboxResult,
    SandboxSpec,
    Session,
)
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.sandboxes.warm import WarmSandbox, fits, warmed

_BECOME = """import json, os, signal, sys
def become():
    argv, env, cwd = json.loads(sys.argv[1])
    place = cwd or os.getcwd()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(place)
        os.execvpe(argv[0], argv, {**os.environ, **env, "PWD": place})
    except OSError as error:
        print("securebench: cannot run", repr(argv[0]) + ":", os.strerror(error.errno), file=sys.stderr)
        sys.exit(126 if error.errno == 13 else 127)
"""


@dataclass(frozen=True)
class ThroughPython:
    """The bubblewrap backend with warm rooms, in which every command begins as a program of ours."""

    name: str = "bubblewrap"
    inner: BubblewrapSandbox = field(default_factory=BubblewrapSandbox)

    async def offers(self, root: Root) -> bool:
        return await self.inner.offers(root)

    async def probe(self) -> Capabilities:
        return await self.inner.probe()

    async def clean(self) -> list[str]:
        return await self.inner.clean()

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Session]:
        return self._open(spec)

    @asynccontextmanager
    async def _open(self, spec: SandboxSpec) -> AsyncIterator[Session]:
        async with warmed(self.inner) as sandbox, sandbox.open(spec) as session:
            assert isinstance(sandbox, WarmSandbox)
            assert await sandbox.warm(), sandbox.why_not
            yield _Session(session) if fits(spec) else session


@dataclass
class _Session:
    session: Session

    async def run(self, command: Command) -> SandboxResult:
        words = json.dumps([command.argv, dict(command.env), command.cwd])
        program = PythonProgram((("become", _BECOME),), "import become; become.become()", (words,))
        result = await self.session.run(replace(command, argv=program.argv, python=program, env={}, cwd=None))
        assert result.fingerprint["warm"]
        return result

    async def stop(self) -> None:
        await self.session.stop()

    def scratch(self, target: str) -> int:
        return self.session.scratch(target)

    def listener(self, port: int) -> object:
        return self.session.listener(port)
