"""Task directories whose images have to be built: `import --build` builds them, and they are run in containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docker.engine import IMAGE, Imaged, docker
from tests.e2e.test_harbor import _run
from tests.e2e.workbench import need_bubblewrap, securebench
from tests.harbor_tasks import CHEATS, built, lay


@pytest.fixture
def pack(sandbox: Imaged, tmp_path: Path) -> Iterator[Path]:
    need_bubblewrap()
    lay(tmp_path / "tasks/Year_Sum", built(IMAGE))
    done = securebench("import", "harbor", tmp_path / "tasks", "--build", "-o", tmp_path / "pack", "--json")
    assert (done.code, done.json["notes"]) == (0, []), (done.out, done.err)
    again = securebench("import", "harbor", tmp_path / "tasks", "-o", tmp_path / "again", "--json")
    (note,) = again.json["notes"]
    assert "RUN executes something (line 4); import with --build" in note["reason"]
    assert again.json["digest"] == done.json["digest"]  # whoever builds the image
    yield tmp_path / "pack"
    image = note["reason"].split()[3].rstrip(",")
    assert image.startswith("securebench-tasks/year-sum:")
    docker("image", "rm", "-f", image)


def test_solution_passes_in_the_built_image_doing_nothing_and_a_cheat_do_not(pack: Path) -> None:
    done = securebench("validate", pack, "--json")
    assert (done.code, done.json["trials"]) == (0, 2), (done.out, done.err)
    (record,) = _run(pack, "cheat", "; ".join(CHEATS.values()))
    assert (record["passed"], record["failure_reason"], record["assurance"]) == (False, "tests_failed", "isolated")


def test_image_that_cannot_be_built_is_told_with_what_was_said(sandbox: Imaged, tmp_path: Path) -> None:
    lay(tmp_path / "tasks/a", built(IMAGE))
    lay(tmp_path / "tasks/b", built(IMAGE) | {"environment/Dockerfile": f"FROM {IMAGE}\nWORKDIR /app\nRUN exit 7\n"})
    done = securebench("import", "harbor", tmp_path / "tasks", "--build", "-o", tmp_path / "pack", "--json")
    (left,) = done.json["left_out_rows"]
    assert (done.code, left["reason"], "7" in left["detail"]) == (1, "its image could not be built", True)
