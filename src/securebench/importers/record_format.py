"""Formats whose source is a table: one record in, one row out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from securebench.errors import ConfigError
from securebench.importers.asking import Asker, Shots
from securebench.importers.base import CannotConvert, Converted, PackRow, Record, Request, Setting
from securebench.importers.prompts import WORKED
from securebench.importers.records import Unreadable, read_records
from securebench.importers.sources.base import Source

Convert = Callable[[Record, Request], PackRow]
"""Makes one row, which asks in the words of the source. Raises CannotConvert."""
Prepare = Callable[[Request], Convert]
"""Looks at the request once, where converting needs more than that. Raises ConfigError."""


@dataclass(frozen=True)
class RecordFormat:
    """A `Format` made of one function on records: JSONL, JSON, CSV, TSV or Parquet, packed or not.

    `words` are placeholders that its prompts may use. `columns` are those of its CSV files that have no first line of
    names; the last of them is looked for in a first line to tell."""

    name: str
    about: str
    family: str | None
    convert: Convert | None = None
    prepare: Prepare | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    shots: int = 5

    def rows(self, source: Source, request: Request) -> Iterator[Converted]:
        request.prompt.check(self.words)
        convert = self.prepare(request) if self.prepare is not None else self.convert
        assert convert is not None  # noqa: S101 — a format has one or the other
        asker = Asker(request.prompt, self._shots(source, request, convert))
        for converted in self._plain(source, request, convert):
            if isinstance(converted.outcome, CannotConvert):
                yield converted
                continue
            try:
                yield Converted(converted.place, asker.ask(converted.outcome))
            except CannotConvert as error:
                yield Converted(converted.place, error)

    def _plain(self, source: Source, request: Request, convert: Convert) -> Iterator[Converted]:
        """Every row, in the words of the source."""
        for record in read_records(source, self.columns):
            if isinstance(record, Unreadable):
                yield Converted(record.place, CannotConvert("cannot be read", record.message))
                continue
            try:
                yield Converted(record.place, convert(record, request))
            except CannotConvert as error:
                yield Converted(record.place, error)

    def _shots(self, source: Source, request: Request, convert: Convert) -> Shots | None:
        if not request.prompt.wants_examples:
            return None
        if request.examples is None:
            raise ConfigError(
                f"{request.prompt.title} shows examples; name their source with --examples, "
                "which must be another one than the rows come from"
            )
        if request.examples.digest == source.digest:
            raise ConfigError("the examples are the source itself, so that prompts would show its answers")
        count = self.shots if request.shots is None else request.shots
        shots = Shots(count, self.family, WORKED in request.prompt.words)
        plain = self._plain(request.examples, request, convert)
        try:
            shots.fill(one.outcome for one in plain if isinstance(one.outcome, PackRow))
        except CannotConvert as error:
            raise ConfigError(f"an example {error}") from None
        return shots
