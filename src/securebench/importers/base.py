"""What a format declares, and what passes between its file and the rest: records in, rows of a pack out.

A format never guesses: a row without an answer key, or with one that it cannot read, is left out with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from securebench._json import Json
from securebench._schema import found
from securebench.importers.prompts import Prompt
from securebench.importers.sources.base import Source, SourceFile

Lane = Literal["public", "hidden"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands in a source. `line` is the line of a text file, else the number of the row, from 1; 0
    means the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class CannotConvert(Exception):
    """A row has no place in a pack. `reason` is one short phrase that many rows share and that is counted; `detail`
    is about this row. Neither repeats an answer."""

    def __init__(self, reason: str, detail: str = "", field: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.field = field


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a source: plain values by name. The readers raise CannotConvert, never anything else.

    Where several names are given, the first that the row has counts: data sets spell the same thing differently."""

    place: Place
    values: Mapping[str, Any]

    def has(self, *names: str) -> bool:
        """Whether one of the names is there and not null."""
        return any(self.values.get(name) is not None for name in names)

    def get(self, *names: str) -> Any:
        """The value as it is; None where there is none."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), None)

    def text(self, *names: str, empty: bool = False) -> str:
        """A text; not an empty one, unless that is allowed."""
        name, value = self._found(names)
        if not isinstance(value, str):
            raise CannotConvert(f"{name} is not text", f"found {found(value)}", name)
        if not value.strip() and not empty:
            raise CannotConvert(f"{name} is empty", field=name)
        return value

    def optional_text(self, *names: str) -> str | None:
        """A text; None where there is none, or only an empty one."""
        return self.text(*names, empty=True) or None if self.has(*names) else None

    def integer(self, *names: str) -> int:
        """A whole number, or text that is one."""
        name, value = self._found(names)
        if isinstance(value, str) and value.strip().removeprefix("-").isdecimal() and len(value) < 20:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise CannotConvert(f"{name} is not a whole number", f"found {found(value)}", name)
        return value

    def texts(self, *names: str) -> list[str]:
        """A list of texts."""
        name, value = self._found(names)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise CannotConvert(f"{name} is not a list of texts", f"found {found(value)}", name)
        return list(value)

    def name_of(self, *names: str) -> str | None:
        """What the source calls the row: a text or a whole number; None where it does not."""
        value = self.get(*names)
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        return str(value).strip() or None

    def numbered(self, prefix: str) -> str:
        """A name for a row that has none: the number of its line, or the path of a file that is one row."""
        return f"{prefix}/{self.place.line}" if self.place.line else self.place.file.rpartition(".")[0]

    def _found(self, names: tuple[str, ...]) -> tuple[str, Any]:
        for name in names:
            if self.values.get(name) is not None:
                return name, self.values[name]
        wanted = " or ".join(names)
        raise CannotConvert(f"{wanted} is missing", f"the row has {', '.join(list(self.values)[:20]) or 'nothing'}")


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be written into the pack, beneath `assets/` (public) or `hidden/`. `path` is relative to that root.

    Rows may share one: the same path with the same bytes is written once, with other bytes it is refused."""

    lane: Lane
    path: str
    data: bytes | SourceFile
    executable: bool = False


@dataclass(frozen=True, slots=True)
class PackRow:
    """A row as it shall stand in `tasks.jsonl`: `input` is public, `eval` is never seen by agents.

    `id` is what the source calls the row; the writer makes it safe and unique. Values are plain JSON. `words` are for
    prompts: what a template may name beside the question."""

    id: str
    input: Mapping[str, Json]
    eval: Mapping[str, Json]
    family: str | None = None  # unless it is the format's
    assets: tuple[Mapping[str, Json], ...] = ()
    environment: Mapping[str, Json] = field(default_factory=dict)
    metadata: Mapping[str, Json] = field(default_factory=dict)
    files: tuple[NewFile, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what is not as in the source, for the report

    def as_json(self) -> dict[str, Any]:
        """The object of its line, without keys that say nothing."""
        whole: dict[str, Any] = {"id": self.id}
        if self.family is not None:
            whole["family"] = self.family
        whole |= {"input": dict(self.input), "eval": dict(self.eval)}
        if self.assets:
            whole["assets"] = [dict(asset) for asset in self.assets]
        if self.environment:
            whole["environment"] = dict(self.environment)
        if self.metadata:
            whole["metadata"] = dict(self.metadata)
        return whole


@dataclass(frozen=True, slots=True)
class Converted:
    """What became of one row of the source: a row of the pack, or why there is none."""

    place: Place
    outcome: PackRow | CannotConvert


@dataclass(frozen=True, slots=True)
class Request:
    """What the operator asked for, beyond source and format.

    `settings` are a format's own (`--set NAME=VALUE`), all of them, with their defaults. `examples` is a second source,
    of which few-shot prompts show the first `shots` rows. `mapping` is the operator's own file, of the format `jsonl`,
    and its name."""

    prompt: Prompt = field(default_factory=Prompt)
    settings: Mapping[str, str] = field(default_factory=dict)
    examples: Source | None = None
    shots: int | None = None  # default: the format's
    mapping: tuple[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a format: what it is about, and what it is unless said otherwise. One that is not `kept` says where
    something lies on this machine, and stays out of the pack. With `choices` it is one of them."""

    about: str
    default: str = ""
    kept: bool = True
    choices: tuple[str, ...] = ()


class Format(Protocol):
    """One benchmark's or framework's way of writing tasks down."""

    @property
    def name(self) -> str:
        """What people type."""
        ...

    @property
    def about(self) -> str:
        """One line: what it is, and which sources it takes."""
        ...

    @property
    def family(self) -> str | None:
        """The family of rows that name none."""
        ...

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings it knows, by name."""
        ...

    def rows(self, source: Source, request: Request) -> Iterator[Converted]:
        """Every row of the source, in its order, one at a time. Raises ConfigError where the source as a whole is not
        what this format is."""
        ...
