"""`Import`: from a source to a pack, row by row, and what became of every row."""

from __future__ import annotations

import glob
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from securebench._canonical import digest_bytes
from securebench._leftovers import is_stale, owned_name
from securebench._removal import remove_tree
from securebench._text import one_line
from securebench.benchmark_pack import BenchmarkPack, load_benchmark_pack
from securebench.errors import ConfigError, StoreError
from securebench.importers.base import CannotConvert, Converted, Format, Place, Request
from securebench.importers.ids import safe_id
from securebench.importers.sources.base import Source
from securebench.importers.writer import MANIFEST, TASKS, PackWriter

MAX_LISTED = 10_000
OnRow = Callable[[int], None]
"""Called with the number of rows looked at so far."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row of the source that is not in the pack."""

    place: Place
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @property
    def why(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    def as_json(self) -> dict[str, Any]:
        return {"file": self.place.file, "line": self.place.line, "reason": self.reason, "detail": self.detail}


def together(rows: Iterable[LeftOut]) -> list[tuple[str, int]]:
    """A line for each thing that is said of rows, with its first place, and of how many it is said."""
    places: dict[str, list[Place]] = {}
    for one in rows:
        places.setdefault(one.why, []).append(one.place)
    return [
        (f"{found[0]} and {len(found) - 1} more: {why}" if len(found) > 1 else f"{found[0]}: {why}", len(found))
        for why, found in places.items()
    ]


@dataclass(slots=True)
class ImportReport:
    """What became of the rows of a source. `left_out` lists the first of those that are not in the pack."""

    rows: int = 0
    written: int = 0
    renamed: int = 0
    excluded: int = 0  # converted, and not admitted
    reasons: Counter[str] = field(default_factory=Counter)
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[LeftOut] = field(default_factory=list)  # of rows that are in the pack, and not quite as in the source

    @property
    def missing(self) -> int:
        return self.reasons.total()

    def leave_out(self, place: Place, error: CannotConvert) -> None:
        reason, detail = one_line(error.reason, 300), one_line(error.detail, 500)
        self.reasons[reason] += 1
        if len(self.left_out) < MAX_LISTED:
            self.left_out.append(LeftOut(place, reason, detail))

    def note(self, place: Place, text: str) -> None:
        if len(self.notes) < MAX_LISTED:
            self.notes.append(LeftOut(place, one_line(text, 500)))

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "written": self.written,
            "renamed": self.renamed,
            "excluded": self.excluded,
            "left_out": self.missing,
            "reasons": dict(self.reasons.most_common()),
            "left_out_rows": [one.as_json() for one in self.left_out],
            "notes": [one.as_json() for one in self.notes],
        }


@dataclass(frozen=True, slots=True)
class Naming:
    """What the pack says of itself and of where it comes from, where the operator knows better than the source."""

    id: str | None = None
    licence: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Import:
    """One source, of one format, to be made a pack. Of the source the first `limit` rows are looked at."""

    chosen: Format
    source: Source
    request: Request = field(default_factory=Request)
    naming: Naming = field(default_factory=Naming)
    limit: int | None = None

    def write(
        self, target: Path, *, without: frozenset[str] = frozenset(), on_row: OnRow = lambda _: None
    ) -> tuple[BenchmarkPack, ImportReport]:
        """Write the pack into the directory `target`, which must be empty, without the rows of these ids. Raises
        ConfigError where the source is not what the format takes, or no row of it can be converted."""
        report = ImportReport()
        pack_id = self.naming.id or safe_id(self.chosen.name)
        with PackWriter(target, pack_id, self.chosen.family, without) as writer:
            for converted in islice(self.chosen.rows(self.source, self.request), self.limit):
                report.rows += 1
                _add(writer, converted, report)
                on_row(report.rows)
            report.written, report.renamed, report.excluded = writer.rows, writer.renamed, writer.excluded
            if not writer.rows:
                raise _nothing(self.source, report)
            writer.finish(self._note(report))
        return load_benchmark_pack(target / MANIFEST, target / TASKS), report

    def _note(self, report: ImportReport) -> Mapping[str, Any]:
        """`source` of the manifest."""
        source, request = self.source, self.request
        defaults = {name: setting.default for name, setting in self.chosen.settings.items() if setting.kept}
        kept = {name: request.settings[name] for name in defaults if request.settings.get(name) != defaults[name]}
        return {
            "format": self.chosen.name,
            "name": one_line(source.name, 200),
            "digest": source.digest,
            "only": list(source.only) or None,
            "licence": self.naming.licence or source.licence,
            "url": self.naming.url or source.url,
            "revision": source.revision,
            "prompt": request.prompt.variant,
            "settings": kept,
            "mapping": digest_bytes(request.mapping[1]) if request.mapping is not None else None,
            "examples": request.examples.digest if request.examples is not None else None,
            "shots": request.shots,
            "limit": self.limit,
            "rows": report.rows,
            "left_out": report.missing or None,
            "excluded": report.excluded or None,
        }


def rows(count: int) -> str:
    """`1 row`, `2 rows`."""
    return f"{count} row" if count == 1 else f"{count} rows"


def import_pack(
    chosen: Format,
    source: Source,
    target: Path,
    request: Request,
    *,
    naming: Naming | None = None,
    limit: int | None = None,
) -> tuple[BenchmarkPack, ImportReport]:
    """An `Import` that is written at once, whole."""
    return Import(chosen, source, request, naming or Naming(), limit).write(target)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """An empty directory that becomes `target` if all goes well, and is gone otherwise. Raises ConfigError where
    there is something already, StoreError."""
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        raise ConfigError(f"{target}: exists already; name another directory, or delete it")
    parent = target.absolute().parent
    staging = parent / f".{target.name}.{owned_name(secrets.token_hex(4))}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _clean(parent, f".{target.name}.")
        staging.mkdir(0o755)
        yield staging
        staging.replace(target)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        if staging.exists():
            remove_tree(staging)


def _clean(parent: Path, prefix: str) -> None:
    """Remove what imports to the same place left that were killed."""
    for entry in parent.glob(f"{glob.escape(prefix)}*"):
        if is_stale(entry.name.removeprefix(prefix)):
            remove_tree(entry)


def _add(writer: PackWriter, converted: Converted, report: ImportReport) -> None:
    if isinstance(converted.outcome, CannotConvert):
        report.leave_out(converted.place, converted.outcome)
        return
    try:
        writer.add(converted.outcome)
    except CannotConvert as error:
        report.leave_out(converted.place, error)
        return
    for text in converted.outcome.notes:
        report.note(converted.place, text)


def _nothing(source: Source, report: ImportReport) -> ConfigError:
    if not report.rows:
        return ConfigError(f"{source.name}: holds no row")
    if report.excluded:
        return ConfigError(f"{source.name}: no row is left: {report.excluded} of {report.rows} were not admitted")
    shown = "\n".join(line for line, _ in together(report.left_out)[:10])
    return ConfigError(f"{source.name}: none of {report.rows} rows could be converted:\n{shown}")
