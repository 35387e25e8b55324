"""This host's Python as a container can run it: the few files it needs, whatever the image has.

Which files these are is asked of the loader and of a fresh interpreter that has loaded the program already. They are
mounted one by one beneath a directory of their own, so nothing else of the host is visible, nothing of the image is
covered, and it does not matter who may enter the directories they are in. Our loader starts our interpreter with our
libraries, so the image may be of another distribution, or have no program at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from securebench._proc import TOOL_ENV, run_tool
from securebench.errors import SandboxError
from securebench.sandboxes.base import Bind

_SECONDS = 30.0
# With what the program in its first argument imports, but not run: where our modules are.
_ASK = """
import sys
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), {"__name__": "asked"})
specs = [getattr(module, "__spec__", None) for module in sys.modules.values()]
origins = [spec.origin for spec in specs if spec is not None and spec.origin and spec.origin.startswith("/")]
print("\\0".join([sys.base_prefix, *origins]), end="")
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`argv` starts it, followed by the path of a program; `env` tells it where its modules are."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    binds: tuple[Bind, ...]


_found: dict[tuple[str, Path, str], Interpreter] = {}


async def find_interpreter(program: Path, home: str) -> Interpreter:
    """What runs `program` in a container, with its files beneath `home`. Looked up once. Raises SandboxError."""
    executable = str(getattr(sys, "_base_executable", "") or sys.executable)
    key = (executable, program, home)
    if key not in _found:
        traced = await _run([executable], {"LD_TRACE_LOADED_OBJECTS": "1"})
        asked = await _run([executable, "-I", "-S", "-B", "-c", _ASK, str(program)], {})
        loader, libraries = loaded_objects(traced.decode("utf-8", "replace"))
        prefix, *origins = asked.decode("utf-8", "surrogateescape").split("\0")
        _found[key] = assemble(home, Path(executable), loader, libraries, Path(prefix), map(Path, origins))
    return _found[key]


def loaded_objects(traced: str) -> tuple[Path | None, dict[str, Path]]:
    """The loader and the libraries by name, from what the loader says of a program. No loader: a static program."""
    loader, libraries = None, {}
    for line in traced.splitlines():
        name, arrow, rest = line.strip().rpartition(" (")[0].partition(" => ")
        if arrow and rest.startswith("/"):
            libraries[name] = Path(rest)
        elif not arrow and name.startswith("/"):
            loader = Path(name)
    return loader, libraries


def assemble(
    home: str,
    executable: Path,
    loader: Path | None,
    libraries: Mapping[str, Path],
    prefix: Path,
    modules: Iterable[Path],
) -> Interpreter:
    """Where each file goes beneath `home`. Raises SandboxError for modules that do not lie beneath the prefix."""
    files = {"python": executable}
    argv: tuple[str, ...] = (f"{home}/python",)
    if loader is not None:
        files["loader"] = loader
        files |= {f"libraries/{name}": path for name, path in libraries.items()}
        argv = (f"{home}/loader", "--library-path", f"{home}/libraries", *argv)
    for path in modules:
        if not path.is_relative_to(prefix):
            raise SandboxError(f"looking for the files of {executable}: {path} is not in {prefix}")
        files[str(path.relative_to(prefix))] = path
    binds = tuple(Bind(path.resolve(), f"{home}/{target}") for target, path in files.items())
    # Not -I, which would also ignore where its modules are; the environment is ours from beginning to end.
    return Interpreter((*argv, "-s", "-S", "-B"), {"PYTHONHOME": home}, binds)


async def _run(argv: list[str], env: Mapping[str, str]) -> bytes:
    done = await run_tool(argv, _SECONDS, env={**TOOL_ENV, **env})
    if not done.ok:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise SandboxError(f"looking for the files of {argv[0]}: {said or 'it did not run'}")
    return done.stdout
