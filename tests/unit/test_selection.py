"""Which tasks a run is about: named, tagged, the first few; and what is said where there are none."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.packs import load, row, write_pack

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack
from securebench.engine.selection import select_tasks
from securebench.errors import ConfigError
from securebench.records.plan import Filters

TAGS: dict[str, Any] = {
    "maths/1": ["easy", "maths"],
    "maths/2": ["hard", "maths"],
    "maths/10": ["hard", "maths", "maths"],
    "odd[1]": ["easy"],
    "odd1": None,
    "word": "easy",
    "numbers": [1, "easy"],
}


@pytest.fixture
def pack(tmp_path: Path) -> BenchmarkPack:
    return load(write_pack(tmp_path, [row(id=name, metadata={"tags": tags}) for name, tags in TAGS.items()]))


@pytest.mark.parametrize(
    "limit, tasks, tags, expected",
    [
        (None, (), (), list(TAGS)),
        (2, (), (), ["maths/1", "maths/2"]),
        (0, (), (), []),
        (100, (), (), list(TAGS)),
        (None, ("odd1",), (), ["odd1"]),
        (None, ("word", "maths/1", "word"), (), ["maths/1", "word"]),
        (None, ("maths/*",), (), ["maths/1", "maths/2", "maths/10"]),
        (None, ("maths/?",), (), ["maths/1", "maths/2"]),
        (None, ("odd[1]",), (), ["odd[1]"]),
        (None, ("odd[0-9]",), (), ["odd1"]),
        (None, (), ("easy",), ["maths/1", "odd[1]"]),
        (None, (), ("easy", "hard"), ["maths/1", "maths/2", "maths/10", "odd[1]"]),
        (1, ("maths/*",), ("hard",), ["maths/2"]),
    ],
)
def test_tasks_are_chosen_in_the_order_of_the_pack(
    pack: BenchmarkPack, limit: int | None, tasks: tuple[str, ...], tags: tuple[str, ...], expected: list[str]
) -> None:
    selection = select_tasks(pack, limit, tasks, tags)
    compiled = compile_benchmark_pack(pack, indexes=selection.indexes)
    assert [task.id for task in compiled] == [entry.id for entry in compiled.entries] == expected
    assert len(compiled) == len(expected)
    assert selection.filters == Filters(limit=limit, tasks=tuple(dict.fromkeys(tasks)), tags=tags)
    assert bool(selection.filters) == bool(tasks or tags or limit is not None)


@pytest.mark.parametrize(
    "tasks, tags, words",
    [
        (("maths/3",), (), "did you mean 'maths/"),
        (("nothing-like-it",), (), "its first task is 'maths/1'"),
        (("physics/*",), (), "no task 'physics/*'"),
        (("MATHS/1",), (), "no task 'MATHS/1'"),
        (("maths/1", "x" * 5000), (), "no task 'xxx"),
        ((), ("eazy",), "did you mean 'easy'?"),
        ((), ("maths", "nope"), "tags of this pack: easy, hard, maths"),
        (("odd1",), ("easy",), "no task is named so (--task) and has one of the tags easy (--tag)"),
    ],
)
def test_choice_of_nothing_is_explained(
    pack: BenchmarkPack, tasks: tuple[str, ...], tags: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        select_tasks(pack, None, tasks, tags)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_pack_without_tags_says_how_to_have_some(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"give rows metadata\.tags"):
        select_tasks(load(write_pack(tmp_path, [row()])), tags=["easy"])


def test_slices_and_single_tasks_of_a_selection_are_compiled_alike(pack: BenchmarkPack) -> None:
    compiled = compile_benchmark_pack(pack, indexes=[4, 1, 2], limit=2)
    assert [task.id for task in compiled[:]] == ["odd1", "maths/2"]
    assert (compiled[0].id, compiled[-1].id, len(compiled)) == ("odd1", "maths/2", 2)
    with pytest.raises(IndexError):
        compiled[2]


@pytest.mark.parametrize("tags", [["x" * 201], [""], ["a"] * 101, {"a": 1}, 5])
def test_what_is_no_list_of_short_texts_is_the_authors_own_affair(tmp_path: Path, tags: Any) -> None:
    pack = load(write_pack(tmp_path, [row(metadata={"tags": tags})]))
    assert pack.entries[0].tags == ()


def test_ten_thousand_tasks_are_chosen_from_soon(tmp_path: Path) -> None:
    source = row("short_answer")
    lines = [json.dumps(source | {"id": f"t{n}", "metadata": {"tags": [f"g{n % 7}"]}}) for n in range(10_000)]
    pack = load(write_pack(tmp_path, lines))
    began = time.process_time()
    selection = select_tasks(pack, 5, ["t*", *(f"t{n}" for n in range(0, 10_000, 3))], ["g3"])
    assert time.process_time() - began < 5
    assert [pack.entries[index].id for index in selection.indexes] == ["t3", "t10", "t17", "t24", "t31"]
