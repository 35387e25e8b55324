"""Task directories that `convert` wrote, used as Harbor uses them: build, let somebody work, test in the same container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docker.engine import IMAGE, Imaged, docker, said
from tests.e2e.workbench import securebench
from tests.terminal_packs import DOUBLE, TOTAL, write_terminal_pack

from securebench.verifiers.rooms.libraries import pytest_mounts

LIBRARIES = "/securebench-libraries"
SOLVE = "bash /solution/solve.sh"
CHEAT = "printf '#!/bin/bash\\nexit 0\\n' > /usr/local/bin/bash && chmod +x /usr/local/bin/bash"


@pytest.fixture(scope="module")
def tasks(sandbox: Imaged, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("converted")
    write_terminal_pack(place / "pack", DOUBLE, TOTAL | {"id": "total"}, image=IMAGE)
    assert securebench("convert", "harbor", place / "pack", "-o", place / "tasks").code == 0
    for name in ("double", "total"):
        said("build", "-q", "-t", f"securebench-converted-{name}", str(place / "tasks" / name / "environment"))
    yield place / "tasks"
    docker("image", "rm", "-f", "securebench-converted-double", "securebench-converted-total")


def reward(task: Path, work: str, *more: str) -> str:
    """What stands in the reward file, as Harbor would read it; empty where there is none."""
    image = f"securebench-converted-{task.name}"
    container = said("run", "-d", "--rm", "--network=none", *more, image, "sleep", "100")
    try:
        docker("cp", str(task / "solution"), f"{container}:/solution")
        said("exec", container, "sh", "-c", work)
        docker("cp", str(task / "tests"), f"{container}:/tests")
        docker("exec", container, "/tests/test.sh")
        return docker("exec", container, "cat", "/logs/verifier/reward.txt").stdout.decode().strip()
    finally:
        docker("rm", "-f", container)


def test_solution_is_rewarded_and_doing_nothing_is_not(tasks: Path) -> None:
    assert reward(tasks / "total", SOLVE) == "1"
    assert reward(tasks / "total", "true") == "0"


def test_checker_with_pytest_and_the_worker_works_there(tasks: Path) -> None:
    mounts = [f"--volume={bind.source}:{bind.target}:ro" for bind in pytest_mounts()]
    mounts.append(f"--env=PYTHONPATH={LIBRARIES}")
    assert reward(tasks / "double", SOLVE, *mounts) == "1"
    assert reward(tasks / "double", "echo 'echo 4' > double.sh", *mounts) == "0"


def test_image_without_pytest_scores_nobody(tasks: Path) -> None:
    assert reward(tasks / "double", SOLVE) == ""


def test_container_that_the_agent_had_believes_the_agent(tasks: Path) -> None:
    """Why the documentation says that assurance is lost there."""
    assert reward(tasks / "total", CHEAT) == "1"
