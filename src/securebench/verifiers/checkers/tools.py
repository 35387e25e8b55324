"""What lies ready for a checker: our own pytest, the SDK, and a stand-in for every interpreter."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from securebench import _json
from securebench.sandboxes.base import Bind, PythonProgram
from securebench.verifiers.rooms.files import CHANNEL, program
from securebench.verifiers.rooms.libraries import pytest_mounts

TOOLS, SDK = "/securebench/tools", "/securebench/sdk"
_NAMES = """
python3 python bash sh dash zsh ksh fish tcsh csh perl node deno bun ruby php lua luajit awk gawk mawk nawk
tclsh expect Rscript R octave julia java javac groovy scala kotlin guile racket sbcl clisp ghci runghc
runhaskell ocaml elixir erl swift dotnet mono make gmake cmake ctest ninja meson git hg svn gcc g++ cc c++
clang clang++ tcc c99 rustc cargo go npm npx yarn pnpm tsc gdb lldb sqlite3 vi vim nvim ex ed emacs busybox m4
jq gradle mvn ant tox
"""
INTERPRETERS = tuple(_NAMES.split())
"""Programs that can be made to execute what they read. `jq` and `ed` are here for their modules and `!`."""
_INSIDE = Path(__file__).parent / "inside"
_DIRECTORIES = ("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin")
_WATCH = ("places.json", "bash_env", "site")
_NOTHING_TO_DO = ("apt-get", "apt", "pip", "pip3", "apk", "dnf", "yum")


@cache
def concierge_program() -> PythonProgram:
    """What holds the channel in the test sandbox."""
    return program((*CHANNEL, "verifiers.checkers.inside.concierge"))


@cache
def worker_program(name: str) -> str:
    """`call` or `http`: what does that in the worker."""
    return (_INSIDE / f"{name}.py").read_text(encoding="utf-8")


@cache
def stand_ins() -> dict[str, Path]:
    """The programs of this host that have a stand-in: every name it has here → the file it really is."""
    found: dict[str, Path] = {}
    for directory in map(Path, _DIRECTORIES):
        versions = [path for pattern in ("python3.*", "perl5*") for path in directory.glob(pattern)]
        for place in (*(directory / name for name in INTERPRETERS), *versions):
            if place.exists() and not place.is_dir() and (real := place.resolve()).is_relative_to("/usr"):
                found.setdefault(place.name, real)
    return found


def real_python() -> str:
    """The interpreter itself, where the checker runs."""
    return f"{TOOLS}/real/{stand_ins()['python3'].name}"


def lay_out(workdir: str, data: str, stand_in: bool, staging: Path) -> None:
    """Write the tools into an empty directory of ours. Without `stand_in` interpreters are what they are, for a checker
    that shares the worker."""
    real = real_python() if stand_in else "python3"
    first = f"#!{real} -ISB\n"
    tools, sdk = staging / "tools", staging / "sdk/securebench"
    for directory in (tools / "bin", sdk):
        directory.mkdir(parents=True)
    forward = first + (_INSIDE / "forward.py").read_text("utf-8")
    _write(tools / "forward", forward, 0o555)
    check = (_INSIDE / "check_pytest.py").read_text("utf-8")
    _write(tools / "check_pytest.py", check, 0o444)
    if stand_in:
        _write(tools / "bin/pytest", f"#!{real} -IB\n{check}", 0o555)
    else:
        _write(tools / "bin/pytest", f'#!/bin/sh\nexec {real} -I -B {TOOLS}/check_pytest.py "$@"\n', 0o555)
    _write(tools / "bin/uv", _UV, 0o555)
    _write(tools / "bin/uvx", _UVX, 0o555)
    for name in _NOTHING_TO_DO:
        _write(
            tools / "bin" / name, '#!/bin/sh\necho "$0: nothing is installed here; the tools are there" >&2\n', 0o555
        )
    for name in ("line", "worker"):
        _write(sdk / f"{name}.py", (_INSIDE / f"{name}.py").read_text("utf-8"), 0o444)
    _write(sdk / "__init__.py", '"""For checkers: `from securebench import worker`."""\n', 0o444)
    if stand_in:
        _watch(tools, workdir, data)


def tool_mounts(staging: Path, stand_in: bool) -> tuple[Bind, ...]:
    """What to mount where of what `lay_out` wrote."""
    targets = set(stand_ins().values()) if stand_in else set()
    tools = staging / "tools"
    return (
        *(Bind(tools / name, f"{TOOLS}/{name}") for name in (_WATCH if stand_in else ())),
        Bind(tools / "bin", f"{TOOLS}/bin"),
        Bind(tools / "forward", f"{TOOLS}/forward"),
        Bind(tools / "check_pytest.py", f"{TOOLS}/check_pytest.py"),
        Bind(staging / "sdk", SDK),
        *(Bind(path, f"{TOOLS}/real/{path.name}") for path in sorted(targets)),
        *(Bind(tools / "forward", str(path)) for path in sorted(targets)),
        *pytest_mounts(),
    )


def _watch(tools: Path, workdir: str, data: str) -> None:
    """What stand-ins need to know, and what they load into interpreters that run here."""
    interpreters = stand_ins()
    names = {name: path.name for name, path in interpreters.items()}
    names |= {path.name: path.name for path in interpreters.values()}
    _write(tools / "places.json", _json.dumps({"workdir": workdir, "data": data, "real": names}), 0o444)
    _write(tools / "bash_env", (_INSIDE / "bash_env").read_text("utf-8"), 0o444)
    (tools / "site").mkdir()
    for name in ("guard", "texts"):
        _write(tools / f"site/securebench_{name}.py", (_INSIDE / f"{name}.py").read_text("utf-8"), 0o444)
    _write(
        tools / "site/sitecustomize.py", f"import securebench_guard\n\nsecurebench_guard.install({workdir!r})\n", 0o444
    )
    for name in INTERPRETERS:
        if name not in interpreters:  # the worker may have it
            (tools / "bin" / name).symlink_to("../forward")


_UV = """#!/bin/sh
# `uv run … pytest …` runs what stands behind; everything else would install, and there is nothing to install.
[ "$1" = run ] || exit 0
shift
while [ $# -gt 0 ]; do
    case "$1" in
        -p|--python|--with|-w|--extra) shift 2 ;;
        -*) shift ;;
        *) exec "$@" ;;
    esac
done
"""
_UVX = _UV.replace('[ "$1" = run ] || exit 0\nshift\n', "")


def _write(path: Path, text: str, mode: int) -> None:
    path.write_text(text, encoding="utf-8")
    os.chmod(path, mode)  # noqa: PTH101 — whatever the umask is
