"""Programs of ours as bytecode, for the host's own interpreter: reading their source takes it longer than running it.

The interpreter compiles them itself, once, in a sandbox in which nothing else runs. What it made is for it alone: one
of another version does not start it. Images have interpreters of their own, for one use, and read the source."""

from __future__ import annotations

import zlib
from binascii import b2a_base64
from dataclasses import replace

from securebench import _json
from securebench.sandboxes._bubblewrap.direct import run_direct
from securebench.sandboxes._bubblewrap.host import Host
from securebench.sandboxes.base import PYTHON, Command, HostRoot, Limits, PythonProgram, SandboxSpec

_COMPILE = """import json, marshal, sys
from _frozen_importlib_external import MAGIC_NUMBER
modules = json.loads(sys.stdin.buffer.read())
codes = [(name, compile(source, name, "exec")) for name, source in modules]
sys.stdout.buffer.write(MAGIC_NUMBER + marshal.dumps(codes))
"""
_LOAD = """import marshal, sys, types, zlib
from binascii import a2b_base64
from _frozen_importlib_external import MAGIC_NUMBER
def load(data):
    if data[:4] != MAGIC_NUMBER:
        sys.exit("this interpreter is not the one that compiled this")
    for name, code in marshal.loads(data[4:]):
        module = sys.modules[name] = types.ModuleType(name)
        exec(code, module.__dict__)
load(zlib.decompress(a2b_base64(sys.argv.pop(1))))
"""
_LONGEST = 120_000  # bytes of one word of a command
_OUTPUT = 8 * 2**20
_made: dict[PythonProgram, Command | None] = {}


async def compiled(host: Host, spec: SandboxSpec, command: Command) -> Command:
    """The same command, starting from bytecode where it is a program of ours for the host's interpreter."""
    program = command.python
    if program is None or not isinstance(spec.root, HostRoot):
        return command
    if program not in _made:  # two at once make it twice, and the same
        _made[program] = await _compile(host, program)
    made = _made[program]
    return command if made is None else replace(command, argv=made.argv)


async def _compile(host: Host, program: PythonProgram) -> Command | None:
    """None where it cannot be had; the source does as well. Raises SandboxError."""
    asked = Command((*PYTHON, _COMPILE), stdin=_json.dumps(program.modules).encode())
    result = await run_direct(host, SandboxSpec(limits=Limits(output=_OUTPUT)), asked, frozenset())
    if not result.ok or result.stdout.truncated:
        return None
    word = b2a_base64(zlib.compress(result.stdout.data), newline=False).decode()
    if len(word) > _LONGEST:
        return None
    return Command((*PYTHON, _LOAD + program.start, word, *program.arguments))
