"""Ordinary programs do under `strict` exactly what they do without us: same output, same exit code.

`tests/e2e/ordinary` holds the programs; the first comment of one may give its `# args:` and `# stdin:`. All of them get
the files of `ordinary/inputs`. Paths of the root, which differ, are written as ROOT on both sides before comparing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap

from securebench.execution.interpreter import Interpreter
from securebench.execution.isolation import Isolation, select_isolation
from securebench.execution.request import Policy, PythonRequest
from securebench.execution.run import run_python
from securebench.sandboxes.base import Bind

ORDINARY = Path(__file__).parent / "ordinary"
PROGRAMS = sorted(path.stem for path in ORDINARY.glob("*.py"))
INPUTS = {
    str(path.relative_to(ORDINARY / "inputs")): path.read_bytes()
    for path in (ORDINARY / "inputs").rglob("*")
    if path.is_file() and path.suffix != ".pyc"
}
SAMPLE = [
    "asyncio_tasks", "collections_tour", "dataclass_models", "enums", "exit_uncaught", "files_of_its_own", "imports_of_its_own",
    "json_documents", "logs", "mocks", "pools_of_threads", "regular_expressions", "sqlite_database", "tar_and_zip",
    "temporary_files", "threads", "time_zones", "typed_code", "unit_tests", "xml_documents",
]  # fmt: skip
AT_ONCE = 4
VERSIONS = ("3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Ended:
    code: int | None
    out: str
    err: str


def request_for(name: str, policy: Policy) -> PythonRequest:
    source = (ORDINARY / f"{name}.py").read_bytes()
    args = re.search(r"^# args: (.*)$", source.decode(), re.MULTILINE)
    stdin = re.search(r"^# stdin: (.*)$", source.decode(), re.MULTILINE)
    return PythonRequest(
        source,
        f"{name}.py",
        INPUTS,
        args=tuple(args[1].split()) if args else (),
        stdin=stdin[1].replace("\\n", "\n").encode() if stdin else b"",
        policy=policy,
    )


def plainly(python: str, request: PythonRequest) -> Ended:
    """The program by itself, in a directory with the same files."""
    with tempfile.TemporaryDirectory() as root:
        for path, data in {request.name: request.program, **request.files}.items():
            target = Path(root, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        done = subprocess.run(
            [python, "-B", f"{root}/{request.name}", *request.args],
            input=request.stdin,
            capture_output=True,
            cwd=root,
            env={"PATH": os.defpath, "LANG": "C.UTF-8", "TMPDIR": root, "HOME": root, "AIBB_TMP": root},
            timeout=600,
            check=False,
        )
    out, err = (text.decode("utf-8", "replace").replace(root, "ROOT") for text in (done.stdout, done.stderr))
    return Ended(done.returncode, out, err)


async def confined(isolation: Isolation, request: PythonRequest) -> Ended:
    result = await run_python(request, isolation)
    streams = [stream.data.decode("utf-8", "replace") for stream in (result.stdout, result.stderr)]
    # The root's name differs from run to run; only its own form is recognised.
    out, err = (re.sub(r"/[\w./-]*aibb-[0-9a-f]{8}", "ROOT", text) for text in streams)
    return Ended(result.exit_code, out, err)


def differences(isolation: Isolation, python: str, names: list[str], policy: Policy) -> dict[str, tuple[Ended, Ended]]:
    """The programs that did not do the same, with what they did plainly and confined."""
    requests = {name: request_for(name, policy) for name in names}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        plain = dict(zip(names, pool.map(lambda name: plainly(python, requests[name]), names), strict=True))
    seen: dict[str, Ended] = {}

    async def all_of_them() -> None:
        left = iter(names)

        async def some() -> None:
            for name in left:
                seen[name] = await confined(isolation, requests[name])

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(some)

    anyio.run(all_of_them)
    return {name: (plain[name], seen[name]) for name in names if plain[name] != seen[name]}


@pytest.fixture(scope="module")
def isolation() -> Isolation:
    need_bubblewrap()
    return anyio.run(select_isolation)


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 60


def test_ordinary_programs_run_unchanged_under_strict(isolation: Isolation) -> None:
    assert differences(isolation, isolation.interpreter.program, PROGRAMS, Policy.STRICT) == {}


def test_ordinary_programs_run_unchanged_under_the_guard_alone() -> None:
    alone = anyio.run(select_isolation, "guard")
    assert differences(alone, alone.interpreter.program, SAMPLE, Policy.STRICT) == {}


def test_a_program_that_differs_is_noticed(isolation: Isolation) -> None:
    """The control: what strict forbids does not come out the same."""
    request = PythonRequest(b"print(eval('1 + 1'))")
    assert plainly(isolation.interpreter.program, request).code == 0
    assert anyio.run(confined, isolation, request).code == 1


def _find(version: str) -> Path | None:
    """An installation of its own; the system's interpreter needs no mount and is tried above."""
    folders = [Path("/opt"), Path.home() / ".pyenv" / "versions"]
    found = [path for folder in folders for path in sorted(folder.glob(f"{version}*/bin/python{version}"))]
    return found[0].resolve() if found else None


@pytest.fixture(scope="module", params=[version for version in VERSIONS if _find(version)])
def other(request: pytest.FixtureRequest, isolation: Isolation) -> Iterator[tuple[Isolation, str]]:
    """Another interpreter of this host, mounted where it lies; copied first where sandboxes cannot reach it."""
    python = _find(request.param)
    assert python is not None
    prefix = python.parent.parent
    with tempfile.TemporaryDirectory(prefix="securebench-test-") as copy:
        os.chmod(copy, 0o755)
        _copy_interpreter(prefix, Path(copy), f"python{request.param}")
        interpreter = Interpreter(str(python), (Bind(Path(copy), str(prefix)),))
        yield replace(isolation, interpreter=interpreter), str(python)


def _copy_interpreter(prefix: Path, target: Path, name: str) -> None:
    """By hard links where that can be: the same bytes, in a place that everybody may enter."""
    unneeded = shutil.ignore_patterns(
        "test", "tests", "idlelib", "site-packages", "config-*", "ensurepip", "*.a", "tkinter"
    )
    shutil.copytree(prefix / "lib" / name, target / "lib" / name, ignore=unneeded, copy_function=_link)
    for library in (prefix / "lib").glob("libpython*.so*"):
        _link(str(library.resolve()), str(target / "lib" / library.name))
    (target / "bin").mkdir()
    _link(str(prefix / "bin" / name), str(target / "bin" / name))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def test_ordinary_programs_run_unchanged_with_other_interpreters(other: tuple[Isolation, str]) -> None:
    isolation, python = other
    assert differences(isolation, python, SAMPLE, Policy.STRICT) == {}
