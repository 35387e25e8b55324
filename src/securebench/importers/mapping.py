"""The mapping file of the format `jsonl`: for each field of a row, where its value comes from. Closed, like all files.

    family: short_answer
    id: {column: qid}
    input:
      question: {column: text}
    eval:
      accepted_answers: {columns: [answer, alternative], optional: true}

A value is taken from a column, from several as a list, from a template, or is the same in every row. Fields within
fields are written as they shall stand."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingOf
from string import Template
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag, model_validator

from securebench import _json, _yaml
from securebench._json import Json
from securebench._schema import ClosedModel, Schema, found
from securebench.answers.numbers import read_number
from securebench.errors import ConfigError
from securebench.importers.base import CannotConvert, Record
from securebench.importers.final_answers import as_json_number
from securebench.pack_schema import Name

Column = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Kind = Literal["text", "number", "integer", "json", "list"]
_KEYS = frozenset({"column", "columns", "template", "value", "as", "separator", "optional"})


class Take(ClosedModel):
    """Where one value comes from. `as` is what the text of a column is read as."""

    column: Column | None = None
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    template: str | None = None  # with `$name`, or `${a.b}`, for columns
    value: JsonValue = None
    as_: Kind | None = Field(default=None, alias="as")
    separator: Annotated[str, StringConstraints(min_length=1)] | None = None  # of `as: list`
    optional: bool = False  # nothing to take is no fault: the field is left out

    @model_validator(mode="after")
    def _one_origin(self) -> Take:
        given = self.model_fields_set & {"column", "columns", "template", "value"}
        if len(given) != 1:
            raise ValueError("needs exactly one of 'column', 'columns', 'template' and 'value'")
        if self.as_ is not None and "value" in given:
            raise ValueError("'as' reads text of the source; a 'value' is taken as it is")
        if (self.separator is not None) != (self.as_ == "list"):
            raise ValueError("'separator' and 'as: list' belong together")
        return self


def _shape(value: Any) -> str:
    return "take" if isinstance(value, Take) or (isinstance(value, dict) and _KEYS & value.keys()) else "fields"


Inner = Annotated[Annotated[Take, Tag("take")] | Annotated[dict[Column, Take], Tag("fields")], Discriminator(_shape)]
Outer = Annotated[Annotated[Take, Tag("take")] | Annotated[dict[Column, Inner], Tag("fields")], Discriminator(_shape)]
"""A value, or fields that hold values: no row has them deeper."""


class Mapping(ClosedModel):
    """The whole file."""

    family: Name
    id: Take | None = None
    input: dict[Column, Outer]
    eval: dict[Column, Outer]
    environment: dict[Column, Outer] = Field(default_factory=dict)
    metadata: dict[Column, Outer] = Field(default_factory=dict)


MAPPING: Schema[Mapping] = Schema(Mapping)


def load_mapping(data: bytes, name: str) -> Mapping:
    """Raises ConfigError with every problem and its line."""
    result = MAPPING.check(_yaml.parse(data, name))
    if isinstance(result, list):
        raise ConfigError(result)
    return result


def filled(fields: MappingOf[str, Any], record: Record) -> dict[str, Json]:
    """The fields of one row. Raises CannotConvert."""
    made: dict[str, Json] = {}
    for name, field in fields.items():
        if not isinstance(field, Take):
            made[name] = filled(field, record)
        elif (value := taken(field, record)) is not None or "value" in field.model_fields_set:
            made[name] = value
    return made


def taken(take: Take, record: Record) -> Json:
    """One value; None where there is nothing, and that is allowed. Raises CannotConvert."""
    if "value" in take.model_fields_set:
        return take.value
    if take.template is not None:
        return _read(_rendered(take.template, record), take, "template")
    if take.column is not None:
        value = _column(record, take.column)
        if value is None and not take.optional:
            raise CannotConvert(f"{take.column} is missing or empty", field=take.column)
        return None if value is None else _read(value, take, take.column)
    values = [(name, _column(record, name)) for name in take.columns or ()]
    missing = [name for name, value in values if value is None]
    if missing and not take.optional:
        raise CannotConvert(f"{missing[0]} is missing or empty", field=missing[0])
    return [_read(value, take, name) for name, value in values if value is not None] or None


def _column(record: Record, name: str) -> Any:
    """A column by its name, or a value within one by a path with dots; None for what is not there or empty."""
    value: Any = record.values
    for part in [name] if name in record.values else name.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = value.get(part) if isinstance(value, MappingOf) else None
    return None if isinstance(value, str) and not value.strip() else value


class _Columns(Template):
    idpattern = r"[A-Za-z_][A-Za-z0-9_]*"
    braceidpattern = r"[^{}]+"
    flags = re.ASCII


def _as_text(value: Any, name: str) -> str:
    """Text as it is, anything else as JSON."""
    try:
        return value if isinstance(value, str) else _json.dumps(value)
    except (TypeError, ValueError):
        raise CannotConvert(
            f"{name} holds what no text can be made of", f"found {type(value).__name__}", name
        ) from None


def _rendered(template: str, record: Record) -> str:
    words: dict[str, str] = {}
    for name in _Columns(template).get_identifiers():
        value = _column(record, name)
        if value is None:
            raise CannotConvert(f"{name} is missing or empty", field=name)
        words[name] = _as_text(value, name)
    try:
        return _Columns(template).substitute(words)
    except ValueError:
        raise CannotConvert("a template of the mapping has a dollar sign that begins no name; write $$") from None


def _read(value: Any, take: Take, name: str) -> Json:
    """A value as the mapping says. Without a word from it, as it is."""
    match take.as_:
        case "text":
            return _as_text(value, name)
        case "number":
            return _number(value, name)
        case "integer":
            number = _number(value, name)
            if not isinstance(number, int):
                raise CannotConvert(f"{name} is no whole number", field=name)
            return number
        case "json":
            return _document(value, name)
        case "list":
            return [part.strip() for part in _text(value, name).split(take.separator) if part.strip()]
    return value  # type: ignore[no-any-return]  # plain JSON, which the writer checks


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise CannotConvert(f"{name} is not text", f"found {found(value)}", name)
    return value


def _number(value: Any, name: str) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    read = read_number(_text(value, name).strip())
    number = None if read is None else as_json_number(read)
    if number is None:
        raise CannotConvert(f"{name} is no number", field=name)
    return number


def _document(value: Any, name: str) -> Json:
    try:
        return _json.loads(_text(value, name))
    except _json.JsonError as error:
        raise CannotConvert(f"{name} is no JSON", str(error), name) from None
