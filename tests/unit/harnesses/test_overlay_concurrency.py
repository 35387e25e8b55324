"""Several engines that want the same tool at the same moment fetch it once; one that dies leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

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


def engine(tmp_path: Path, cache: ToolCache, version: str) -> subprocess.Popen[str]:
    description = tmp_path / "toy.yaml"
    description.write_text(toy_tool().model_dump_json())
    argv = [sys.executable, "-c", PROGRAM, str(description), str(cache.root), version]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


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
    registry.slowness = 1.0
    engines = [engine(tmp_path, cache, version) for version in ("1.0.0", "1.0.0", "latest")]
    said = [process.communicate(timeout=60) for process in engines]
    assert [process.returncode for process in engines] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1
    assert registry.fetches() == 1
    assert sum("another process is fetching toy" in err for _, err in said) == 2
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
    registry.slowness = 60.0
    killed = engine(tmp_path, cache, "1.0.0")
    deadline = time.monotonic() + 30
    while not registry.fetches() and time.monotonic() < deadline:
        time.sleep(0.05)
    killed.kill()
    killed.communicate(timeout=30)
    assert list((cache.root / "tmp").iterdir()), "the control: it was in the middle"
    deadline = time.monotonic() + 20
    while (alive := npm_beneath(cache.root)) and time.monotonic() < deadline:
        time.sleep(0.05)
    registry.slowness = 0.0
    assert not alive, "npm outlived the engine that started it"
    done = engine(tmp_path, cache, "1.0.0")
    out, err = done.communicate(timeout=60)
    assert out.startswith("sha256:"), err
    assert not list((cache.root / "tmp").iterdir())


def test_cancelled_fetch_leaves_nothing(registry: Registry, cache: ToolCache) -> None:
    registry.publish(PACKAGE, "1.0.0", program("toy"))
    registry.slowness = 1.5

    async def main() -> None:
        with anyio.move_on_after(20) as scope:
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
    assert not list((cache.root / "tmp").iterdir())
    assert not list(cache.entries())
