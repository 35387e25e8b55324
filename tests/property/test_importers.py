"""Any row of any source is converted or left out with a reason; nothing else happens, whatever it holds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.importers.test_lanes import MAPPING, ROWS

from securebench.importers.base import CannotConvert, PackRow, Place, Record, Request
from securebench.importers.record_format import RecordFormat
from securebench.importers.registry import FORMATS, check_settings
from securebench.importers.writer import PackWriter

PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
VALUES = st.recursive(
    PLAIN | st.binary(max_size=5) | st.sampled_from(["[", "{}", "[]", "####", "\\boxed{", "A", "def f(", "$x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MORE_NAMES = ["id", "task_id", "choices", "options", "test", "metadata", "starter_code", "solution", "unique_id", "q"]


def converter(name: str) -> Any:
    chosen = FORMATS[name]
    assert isinstance(chosen, RecordFormat)
    request = Request(settings=check_settings(chosen, {}), mapping=("m.yaml", MAPPING.encode()))
    convert = chosen.prepare(request) if chosen.prepare else chosen.convert
    assert convert is not None
    return lambda values: convert(Record(Place("x.jsonl", 1), values), request)


@pytest.mark.parametrize("name", ROWS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_rows_are_converted_or_left_out(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sound = ROWS[name][0]
    names = st.sampled_from([*sound, *MORE_NAMES])
    changes = data.draw(st.dictionaries(names, VALUES, min_size=1, max_size=3))
    made = []
    with suppress(CannotConvert):
        made.append(converter(name)(sound | changes))
    for row in made:
        assert isinstance(row, PackRow)
        directory = tmp_path_factory.mktemp("pack")
        with PackWriter(directory, "p", FORMATS[name].family) as writer, suppress(CannotConvert):
            writer.add(row)
