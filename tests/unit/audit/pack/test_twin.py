"""The twin of a pack: nothing on the agent's side may depend on what is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.packs import VALID_ROWS, changed, load, row, write_pack
from tests.unit.audit.pack.auditing import choice

from securebench.audit.pack.twin import compare_with_twins
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.environment import TaskEnvironment
from securebench.resources import Resource, ResourceBundle, Visibility
from securebench.tasks import SecureBenchTask


def test_a_pack_of_every_family_is_what_its_twins_are(tmp_path: Path) -> None:
    again = [changed(one, "id", f"{one['id']}-again") for one in VALID_ROWS.values()]
    result = compare_with_twins(load(write_pack(tmp_path, [*VALID_ROWS.values(), *again, choice(1, [0])])))
    assert result.notes == []
    assert (result.compared, result.left_out) == (13 + 3, 0)


def _with_metadata(task: SecureBenchTask) -> SecureBenchTask:
    return replace(task, _metadata=MappingProxyType({"digest": task.row_digest}))


def _with_lane(task: SecureBenchTask) -> SecureBenchTask:
    published = [
        Resource(one.name, Visibility.PUBLIC, one.value, one.files, one.is_asset) for one in task.resources.resources
    ]
    return replace(task, resources=ResourceBundle(tuple(published)))


def _with_limits(task: SecureBenchTask) -> SecureBenchTask:
    answers = str(task.hidden_payload().get("hidden"))
    return replace(task, environment=TaskEnvironment(memory=2**26 + sum(answers.encode())))


@pytest.mark.parametrize("leaking", [_with_metadata, _with_lane, _with_limits])
@pytest.mark.parametrize("family", ["multiple_choice", "short_answer", "code_completion", "terminal_task"])
def test_a_compiler_that_leaks_is_found(tmp_path: Path, leaking: object, family: str) -> None:
    def compiler(pack: BenchmarkPack) -> Iterator[SecureBenchTask]:
        return map(leaking, compile_benchmark_pack(pack))  # type: ignore[arg-type]

    pack = load(write_pack(tmp_path, [row(family), row(family, id="another")]))
    assert compare_with_twins(pack, compiler).notes != []
