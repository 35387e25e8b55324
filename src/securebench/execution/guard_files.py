"""The guard's files, made ready once per process.

They are copied with a compiled form that is never compared with its source: an interpreter started with `-B` on a
read-only place would otherwise compile the guard anew for every program. Python compiles only for its own version, so
for another one that interpreter is asked to, once; an image's own interpreter is not, and compiles every time.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import marshal
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from securebench._leftovers import owned_name
from securebench._proc import run_tool
from securebench.errors import InfrastructureError
from securebench.execution.interpreter import Interpreter

GUARD_SOURCE = Path(__file__).resolve().parent.parent / "guard"

_UNCHECKED = 0b01  # of a .pyc: it goes by a hash of its source, which the importer does not check
_COMPILE_SECONDS = 30.0
# For the other interpreter: what `_compiled` does here.
_COMPILE = """
import importlib.util as util, marshal, os, sys
for name in sys.argv[2:]:
    path = os.path.join(sys.argv[1], name)
    with open(path, "rb") as file:
        data = file.read()
    code = compile(data, path, "exec", dont_inherit=True)
    with open(util.cache_from_source(path), "wb") as file:
        file.write(util.MAGIC_NUMBER + (1).to_bytes(4, "little") + util.source_hash(data) + marshal.dumps(code))
        os.fchmod(file.fileno(), 0o444)
"""

_made: list[Path] = []
_making = threading.Lock()
_compiled_by: set[str] = set()


async def guard_for(interpreter: Interpreter) -> Path:
    """`guard_directory`, compiled for this interpreter too if that can be done here."""
    made = guard_directory()
    same = interpreter.version == sys.version_info[:2]
    if not same and interpreter.program.startswith("/") and interpreter.program not in _compiled_by:
        _compiled_by.add(interpreter.program)
        names = sorted(path.name for path in (made / "guard").glob("*.py"))
        argv = (interpreter.program, "-I", "-B", "-c", _COMPILE, str(made / "guard"), *names)
        try:
            await run_tool(argv, _COMPILE_SECONDS)
        except InfrastructureError:
            return made  # one that cannot even be started says so when it is to run the program
    return made


def guard_directory() -> Path:
    """A directory of ours that holds `guard`, made once per process and removed when it ends."""
    with _making:
        if not _made:
            made = Path(tempfile.mkdtemp(prefix=owned_name("guard-")))
            atexit.register(_remove, made, os.getpid())
            _copy(GUARD_SOURCE, made / "guard")
            made.chmod(0o755)  # sandboxes have users of their own
            _made.append(made)
        return _made[0]


def _copy(source: Path, target: Path) -> None:
    cache = target / "__pycache__"
    cache.mkdir(parents=True)
    for path in sorted(source.glob("*.py")):
        compiled = Path(importlib.util.cache_from_source(str(target / path.name)))
        for file, content in ((target / path.name, path.read_bytes()), (compiled, _compiled(path))):
            file.write_bytes(content)
            file.chmod(0o444)
    for folder in (cache, target):
        folder.chmod(0o755)  # whatever the umask is


def _compiled(path: Path) -> bytes:
    """The .pyc of one file, by way of Python's own cache where that has it."""
    name = f"guard.{path.stem}"
    code = importlib.machinery.SourceFileLoader(name, str(path)).get_code(name)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little")
    return header + importlib.util.source_hash(path.read_bytes()) + marshal.dumps(code)


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
