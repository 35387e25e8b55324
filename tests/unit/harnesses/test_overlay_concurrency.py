"""Several engines that want the same tool at the same moment fetch it once; one that dies leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import anyio
from tests.unit.harnesses.toy_registry import PACKAGE, Registry, program, toy_tool

from securebench.harnesses.overlays import install_tool
from securebench.harnesses.tools.cache import ToolCache

PROGRAM = """
import sys, anyio
from pathlib import Path
from securebench.harnesses.overlays import install_tool
from securebench.harnesses.tools.cache import ToolCache
from securebench.harnesses.tools.description import read_tool

async def main():
    tool = read_tool(Path(sys.argv[1]))
    overlay = await install_tool(tool, sys.argv[3], lambda text: print(text, file=sys.stderr), cache=ToolCache(Path(sys.argv[2])))
    print(overlay.digest)

anyio.run(main)
"""


def engine(tmp_path: Path, cache: ToolCache, version: str, errors: IO[str] | int = subprocess.PIPE) -> Any:
    description = tmp_path / "toy.yaml"
    description.write_text(toy_tool().model_dump_json())
    argv = [sys.executable, "-c", PROGRAM, str(description), str(cache.root), version]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True, env=dict(os.environ))


def wait_until(seen: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not seen() and time.monotonic() < deadline:
        time.sleep(0.05)


def npm_beneath(directory: Path) -> list[str]:
    """Processes that work in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found += [process.name] if (process / "cwd").readlink().is_relative_to(directory) else []
        except OSError:
            continue  # gone, or not ours to look at
    return found


def test_processes_at_once_fetch_once(registry: Registry, cache: ToolCache, tmp_path: Path) -> None:
    registry.publish(PACKAGE, "1.0.0", program("toy"))
    registry.slowness = 200.0  # until the others wait, too
    files = [(tmp_path / f"errors-{number}").open("w+") for number in range(3)]

    def waiting() -> int:
        return sum("another process is fetching toy" in Path(file.name).read_text() for file in files)

    with files[0], files[1], files[2]:
        versions = ("1.0.0", "1.0.0", "latest")
        engines = [engine(tmp_path, cache, version, file) for version, file in zip(versions, files, strict=True)]
        wait_until(lambda: waiting() == 2 and registry.fetches())
        registry.slowness = 0.0
        said = [process.communicate(timeout=120)[0] for process in engines]
    errors = [Path(file.name).read_text() for file in files]
    assert [process.returncode for process in engines] == [0, 0, 0], errors
    assert len(set(said)) == 1
    assert registry.fetches() == 1
    assert waiting() == 2, errors
    assert len(list(cache.entries())) == 1


def test_tasks_of_one_process_fetch_once(registry: Registry, cache: ToolCache) -> None:
    registry.publish(PACKAGE, "1.0.0", program("toy"))
    registry.slowness = 0.5
    digests: list[str] = []

    async def one() -> None:
        digests.append((await install_tool(toy_tool(), None, cache=cache)).digest)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(one)

    anyio.run(main)
    assert (len(digests), len(set(digests)), registry.fetches()) == (4, 1, 1)


def test_killed_engine_leaves_the_lock_free_and_its_work_is_swept(
    registry: Registry, cache: ToolCache, tmp_path: Path
) -> None:
    registry.publish(PACKAGE, "1.0.0", program("toy"))
    registry.slowness = 200.0
    killed = engine(tmp_path, cache, "1.0.0")
    wait_until(registry.fetches)
    killed.kill()
    killed.communicate(timeout=60)
    assert list((cache.root / "tmp").iterdir()), "the control: it was in the middle"
    wait_until(lambda: not npm_beneath(cache.root))
    alive = npm_beneath(cache.root)
    registry.slowness = 0.0
    assert not alive, "npm outlived the engine that started it"
    done = engine(tmp_path, cache, "1.0.0")
    out, err = done.communicate(timeout=120)
    assert out.startswith("sha256:"), err
    assert not list((cache.root / "tmp").iterdir())


def test_cancelled_fetch_leaves_nothing(registry: Registry, cache: ToolCache) -> None:
    registry.publish(PACKAGE, "1.0.0", program("toy"))
    registry.slowness = 200.0

    async def main() -> None:
        with anyio.move_on_after(120) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(install_tool, toy_tool(), None, lambda _: None)
                while not registry.fetches():
                    await anyio.sleep(0.02)
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught

    os.environ["SECUREBENCH_HOME"] = str(cache.root.parent)
    try:
        anyio.run(main)
    finally:
        del os.environ["SECUREBENCH_HOME"]
        registry.slowness = 0.0
    assert not list((cache.root / "tmp").iterdir())
    assert not list(cache.entries())
