"""`jsonl`: any table, with a mapping file that says where the fields of a row come from."""

from __future__ import annotations

from securebench._schema import suggest
from securebench.errors import ConfigError, Problem
from securebench.families.registry import FAMILIES
from securebench.importers.base import PackRow, Record, Request
from securebench.importers.mapping import filled, load_mapping, taken
from securebench.importers.record_format import Convert, RecordFormat


def prepare(request: Request) -> Convert:
    """Raises ConfigError for a mapping that is missing or wrong."""
    if request.mapping is None:
        raise ConfigError("the format jsonl needs to know where fields come from: --mapping FILE (docs/importing.md)")
    name, data = request.mapping
    mapping = load_mapping(data, name)
    if mapping.family not in FAMILIES:
        hint = suggest(mapping.family, FAMILIES)
        raise ConfigError([Problem(name, 0, "family", f"expected one of {', '.join(FAMILIES)}{hint}")])

    def convert(record: Record, _: Request) -> PackRow:
        identity = None if mapping.id is None else taken(mapping.id, record)
        return PackRow(
            id=record.numbered(stem(record.place.file)) if identity is None else str(identity),
            input=filled(mapping.input, record),
            eval=filled(mapping.eval, record),
            family=mapping.family,
            environment=filled(mapping.environment, record),
            metadata=filled(mapping.metadata, record),
        )

    return convert


def stem(path: str) -> str:
    """The name of a file without its directory and its suffixes."""
    return path.rpartition("/")[2].partition(".")[0]


FORMAT = RecordFormat(
    name="jsonl",
    about="any table, with a mapping file: --mapping FILE (.jsonl, .json, .csv, .tsv, .parquet)",
    family=None,
    prepare=prepare,
)
