"""Which tasks of a pack a run is about: named ones, tagged ones, the first few. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice

from securebench._schema import suggest
from securebench.benchmark_pack import BenchmarkPack, RowIndex
from securebench.errors import ConfigError
from securebench.harnesses.sample_file import SampleFile
from securebench.records.plan import Filters

_GLOB = frozenset("*?[")
_LONGEST = 1000  # characters of a pattern
_COMPARED = 20_000  # names that a misspelt one is compared with


@dataclass(frozen=True, slots=True)
class Selection:
    """Numbers of rows in the pack's order, and the filters that left the others out."""

    indexes: Sequence[int]
    filters: Filters


def select_tasks(
    pack: BenchmarkPack,
    limit: int | None = None,
    tasks: Iterable[str] = (),
    tags: Iterable[str] = (),
    samples: SampleFile | None = None,
) -> Selection:
    """Tasks that any of `tasks` names (an id, or a pattern with `*`, `?`, `[…]`), that have any of `tags` and a sample
    in `samples`, where these are given; of these the first `limit`. Raises ConfigError for a name or tag that no task
    has, and where nothing is left."""
    entries = pack.entries
    names, marks = tuple(dict.fromkeys(tasks)), tuple(dict.fromkeys(tags))
    left: Sequence[int] = range(len(entries))
    if names:
        named = _named(entries, names)
        left = [index for index in left if index in named]
    if marks:
        _check_tags(entries, marks)
        left = [index for index in left if not set(marks).isdisjoint(entries[index].tags)]
    if not left:
        raise ConfigError(f"no task is named so (--task) and has one of the tags {', '.join(marks)} (--tag)")
    if samples is not None:
        left = [index for index in left if samples.count(entries[index].id)]
        if not left:
            raise ConfigError(f"{samples.name}: none of the chosen tasks has a sample there")
    if limit is not None:
        limit = max(0, limit)
        left = left[:limit]
    return Selection(left, Filters(limit=limit, tasks=names, tags=marks, sampled=samples is not None))


def _named(entries: Sequence[RowIndex], names: Iterable[str]) -> set[int]:
    by_id = {entry.id: index for index, entry in enumerate(entries)}
    found: set[int] = set()
    unknown: list[str] = []
    for name in names:
        if name in by_id:
            found.add(by_id[name])
            continue
        # An id may hold such a character itself, so patterns come second.
        is_pattern = len(name) <= _LONGEST and not _GLOB.isdisjoint(name)
        matching = [index for id_, index in by_id.items() if fnmatchcase(id_, name)] if is_pattern else []
        found.update(matching)
        if not matching:
            unknown.append(name)
    if unknown:
        raise ConfigError(f"the pack has no task {_listed(unknown, by_id)}; its first task is {entries[0].id!r}")
    return found


def _check_tags(entries: Iterable[RowIndex], tags: Iterable[str]) -> None:
    known = {tag for entry in entries for tag in entry.tags}
    if unknown := [tag for tag in tags if tag not in known]:
        some = ", ".join(sorted(known)[:20]) or "none: give rows metadata.tags"
        raise ConfigError(f"no task has the tag {_listed(unknown, known)}; tags of this pack: {some}")


def _listed(unknown: Sequence[str], known: Iterable[str]) -> str:
    """The first few, each with what may have been meant."""
    near = list(islice(known, _COMPARED))
    named = [f"{name[:100]!r}{suggest(name[:100], near)}" for name in unknown[:3]]
    return ", ".join(named) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
