"""Load a pack: `manifest.yaml` and `tasks.jsonl`, checked completely in one pass, kept as a small index.

Rows are read again from the file when they are needed and compared with their digest, so a pack of a
million rows costs memory for the index only and cannot change under a run."""

from __future__ import annotations

import hashlib
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, overload

from securebench import _fs, _json, _yaml
from securebench._canonical import digest_bytes, digest_value
from securebench._schema import FileRef, suggest
from securebench._yaml import Loc, dotted
from securebench.errors import IntegrityError, PackError, Problem, os_reason
from securebench.families.base import CandidateKind, Family
from securebench.families.registry import FAMILIES
from securebench.pack_schema import MANIFEST, AnyRow, Manifest, row_schema
from securebench.resources import Visibility
from securebench.workspaces.path_policy import PathRefused, check_collisions, check_mount

MAX_ROW_BYTES = 16 * 2**20
MAX_TASKS_BYTES = 8 * 2**30
MAX_ROWS = 2_000_000
MAX_ASSET_ENTRIES = 100_000
MAX_ASSET_BYTES = 16 * 2**30
MAX_PROBLEMS = 200
MAX_TAGS = 100
MAX_TAG_LENGTH = 200


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Where a row stands in `tasks.jsonl`, and what it was when the pack was loaded."""

    id: str
    line: int
    offset: int
    length: int
    sha256: bytes
    family: str
    image: str | None
    domains: tuple[str, ...]  # that its agent may reach
    files: tuple[str, ...]  # keys of `BenchmarkPack.file_digests`
    tags: tuple[str, ...] = ()  # `metadata.tags`, by which tasks can be chosen
    memory: int | None = None  # its limit, in bytes


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """One checked row with the manifest's defaults merged in."""

    row: AnyRow
    line: int
    digest: str


@dataclass(frozen=True)
class BenchmarkPack(Sequence[BenchmarkRow]):
    """A checked pack: a sequence of rows that are read when asked for."""

    manifest: Manifest
    manifest_path: Path
    tasks_path: Path
    digest: str
    entries: tuple[RowIndex, ...]
    file_digests: dict[str, str] = field(repr=False)

    @property
    def directory(self) -> Path:
        return self.manifest_path.parent

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(entry.id for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> BenchmarkRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BenchmarkRow]: ...
    def __getitem__(self, index: int | slice) -> BenchmarkRow | Sequence[BenchmarkRow]:
        if isinstance(index, slice):
            return [self._read(entry) for entry in self.entries[index]]
        return self._read(self.entries[index])

    def __iter__(self) -> Iterator[BenchmarkRow]:
        return map(self._read, self.entries)

    def _read(self, entry: RowIndex) -> BenchmarkRow:
        try:
            data = os.pread(self._tasks_file.fileno(), entry.length, entry.offset)
        except OSError as error:
            raise IntegrityError(f"{self.tasks_path}: {os_reason(error)}, but the pack was loaded from it") from error
        if hashlib.sha256(data).digest() != entry.sha256:
            raise IntegrityError(f"{self.tasks_path}:{entry.line}: row changed since the pack was loaded; start again")
        row = RowChecker(self.manifest, str(self.tasks_path)).check(data, entry.line)
        if isinstance(row, list):
            raise PackError(row)
        return BenchmarkRow(row, entry.line, self.row_digest(entry))

    @cached_property
    def _tasks_file(self) -> BinaryIO:
        """Opened by the first row that is read, closed when the pack is forgotten."""
        stack = ExitStack()
        file = stack.enter_context(_fs.open_named(self.tasks_path))
        weakref.finalize(self, stack.close)
        return file

    def row_digest(self, entry: RowIndex) -> str:
        """Of a row with its files within this pack, without reading it."""
        files = {key: self.file_digests[key] for key in entry.files}
        return digest_value({"pack": self._secret, "row": entry.sha256.hex(), "files": files})

    @cached_property
    def _secret(self) -> str:
        """Of all rows together. Records are published: against a digest of its row alone, whoever knows a question
        could try every answer to it."""
        whole = hashlib.sha256(b"securebench: the rows of a pack\0")
        for entry in self.entries:
            whole.update(entry.sha256)
        return whole.hexdigest()


def load_benchmark_pack(
    manifest: Path | str, tasks: Path | str, *, on_row: Callable[[AnyRow, int], None] | None = None
) -> BenchmarkPack:
    """Check both files and every asset they name. Raises PackError with all problems found.

    `on_row` sees every sound row and its line in this one pass."""
    manifest_path, tasks_path = Path(manifest), Path(tasks)
    data = _read_file(manifest_path, _yaml.MAX_BYTES)
    model = _check_manifest(data, str(manifest_path))
    rows = RowChecker(model, str(tasks_path))
    assets = _Assets(manifest_path.parent, rows)
    if tasks_path.resolve().is_relative_to((manifest_path.parent / model.asset_roots.public).resolve()):
        rows.report(
            [Problem(str(tasks_path), 0, "", "lies beneath asset_roots.public, whose files agents get; move it")]
        )
    index: list[RowIndex] = []
    whole = hashlib.sha256()
    for line, offset, raw in _lines(tasks_path, rows, whole):
        row = rows.check(raw, line)
        if isinstance(row, list):
            rows.report(row)
            continue
        assets.check(row, line)
        index.append(RowIndex(row.id, line, offset, len(raw), hashlib.sha256(raw).digest(), *_needs(row, model)))
        if on_row is not None:
            on_row(row, line)
    if not index and not rows.problems:
        rows.report([Problem(str(tasks_path), 0, "", "holds no row; write one JSON object per line")])
    if rows.problems:
        raise PackError(rows.problems, rows.suppressed)
    digest = digest_value(
        {"manifest": digest_bytes(data), "tasks": "sha256:" + whole.hexdigest(), "files": assets.digests}
    )
    return BenchmarkPack(model, manifest_path, tasks_path, digest, tuple(index), assets.digests)


def sound_rows(manifest: Path, tasks: Path, wanted: Callable[[int], bool]) -> Iterator[tuple[AnyRow, int]]:
    """The sound rows on wanted lines, each with its line; what is wrong with the others is `load`'s to say."""
    rows = RowChecker(_check_manifest(_read_file(manifest, _yaml.MAX_BYTES), str(manifest)), str(tasks))
    for line, _, raw in _lines(tasks, rows, hashlib.sha256()):
        if wanted(line) and not isinstance(row := rows.check(raw, line), list):
            yield row, line


_Needs = tuple[str, str | None, tuple[str, ...], tuple[str, ...], tuple[str, ...], int | None]


def _needs(row: AnyRow, manifest: Manifest) -> _Needs:
    environment = row.environment
    files = tuple(sorted({file_key(root, ref) for root, _, ref in file_refs(row, manifest)}))
    memory = environment.resources.memory
    limit = memory if isinstance(memory, int) else None
    return row.family, environment.image, environment.network.allowed_domains, files, _tags(row.metadata), limit


def _tags(metadata: dict[str, Any]) -> tuple[str, ...]:
    """`metadata` is the author's own, so what is no list of short texts means something else there."""
    tags = metadata.get("tags")
    if not isinstance(tags, list) or len(tags) > MAX_TAGS:
        return ()
    if not all(isinstance(tag, str) and 0 < len(tag) <= MAX_TAG_LENGTH for tag in tags):
        return ()
    return tuple(sys.intern(tag) for tag in dict.fromkeys(tags))


def candidate_kinds(pack: BenchmarkPack) -> dict[str, CandidateKind]:
    """What kind of candidate each task collects, by id."""
    return {entry.id: FAMILIES[entry.family].candidate for entry in pack.entries}


def find_pack(path: Path) -> tuple[Path, Path]:
    """The manifest and tasks file of a pack given as a directory, as its manifest, or as its tasks. Raises
    PackError."""
    if path.suffix not in (".yaml", ".jsonl") and not path.exists():
        raise PackError(f"{path}: no such directory")
    if path.suffix == ".jsonl":
        manifest, tasks = path.with_name("manifest.yaml"), path
    else:
        manifest = path / "manifest.yaml" if path.is_dir() else path
        tasks = manifest.with_name("tasks.jsonl")
    missing = [str(file) for file in (manifest, tasks) if not file.is_file()]
    if missing:
        raise PackError(
            [Problem(file, 0, "", "no such file; a pack has manifest.yaml and tasks.jsonl") for file in missing]
        )
    return manifest, tasks


def file_refs(row: AnyRow, manifest: Manifest) -> Iterator[tuple[str, Loc, FileRef]]:
    """Every file a row names: its asset root, the place in the row, and the reference."""
    for number, asset in enumerate(row.assets):
        yield manifest.asset_roots.public, ("assets", number), asset
    for name in (*type(row.eval).model_fields, *(row.eval.__pydantic_extra__ or ())):
        for loc, ref in _refs_in(getattr(row.eval, name), ("eval", name)):
            yield manifest.asset_roots.eval, loc, ref


def _refs_in(value: Any, loc: Loc) -> Iterator[tuple[Loc, FileRef]]:
    if isinstance(value, FileRef):
        yield loc, value
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _refs_in(item, (*loc, number))
    elif hasattr(type(value), "model_fields"):
        for name in type(value).model_fields:
            yield from _refs_in(getattr(value, name), (*loc, name))


def file_key(root: str, ref: FileRef) -> str:
    """The name of a referenced file in `BenchmarkPack.file_digests`."""
    return f"{root}/{ref.path}"


def _read_file(path: Path, limit: int) -> bytes:
    try:
        with _fs.open_named(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise PackError([Problem(str(path), 0, "", os_reason(error))]) from error
    if len(data) > limit:
        raise PackError([Problem(str(path), 0, "", f"file is larger than {limit} bytes")])
    return data


def _check_manifest(data: bytes, file: str) -> Manifest:
    result = MANIFEST.check(_yaml.parse(data, file))
    if isinstance(result, list):
        raise PackError(result)
    return result


def _lines(path: Path, rows: RowChecker, whole: Any) -> Iterator[tuple[int, int, bytes]]:
    """Line number, offset and bytes of every line that is not blank."""
    try:
        with _fs.open_named(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_TASKS_BYTES:
                rows.report([Problem(str(path), 0, "", f"file is larger than {MAX_TASKS_BYTES} bytes")])
                return
            line, offset = 0, 0
            while raw := file.readline(MAX_ROW_BYTES + 1):
                line += 1
                whole.update(raw)
                if len(raw) > MAX_ROW_BYTES:
                    rows.report([Problem(str(path), line, "", f"row is larger than {MAX_ROW_BYTES} bytes")])
                    return
                if line > MAX_ROWS:
                    rows.report([Problem(str(path), line, "", f"more than {MAX_ROWS} rows")])
                    return
                if raw.strip():
                    yield line, offset, raw
                offset += len(raw)
    except OSError as error:
        rows.report([Problem(str(path), 0, "", os_reason(error))])


class RowChecker:
    """Checks rows one by one and remembers what it must: the ids seen and the problems reported."""

    def __init__(self, manifest: Manifest, file: str) -> None:
        self.manifest = manifest
        self.environment = manifest.defaults.environment.model_dump(mode="json", exclude_unset=True)
        self.file = file
        self.first_line: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.suppressed = 0

    def report(self, problems: list[Problem]) -> None:
        room = MAX_PROBLEMS - len(self.problems)
        self.problems += problems[:room]
        self.suppressed += max(0, len(problems) - room)

    def check(self, raw: bytes, line: int) -> AnyRow | list[Problem]:
        """The typed row, or every problem with it."""

        def problem(message: str, loc: Loc = ()) -> Problem:
            return Problem(self.file, line, dotted(loc), message)

        try:
            value = _json.loads(raw)
        except _json.JsonError as error:
            return [problem(str(error))]
        if not isinstance(value, dict):
            return [problem("expected one JSON object per line")]
        problems = []
        name = value.get("id")
        if isinstance(name, str) and (first := self.first_line.setdefault(name, line)) != line:
            problems.append(problem(f"duplicate id {name[:80]!r} (first on line {first})", ("id",)))
        family = value.get("family", self.manifest.defaults.family)
        if not isinstance(family, str) or family not in FAMILIES:
            hint = suggest(family, FAMILIES) if isinstance(family, str) else ""
            return [*problems, problem(f"expected one of {', '.join(FAMILIES)}{hint}", ("family",))]
        contract = FAMILIES[family]
        merged = _with_defaults(value, family, self.environment)
        row = row_schema(contract).validate(merged, self.file, lambda _: line)
        public, private = value.get("input"), value.get("eval")
        if isinstance(private, dict):
            problems += [problem(message, loc) for loc, message in contract.eval_model.refused_keys(private)]
        if isinstance(private, dict) and isinstance(public, dict):
            both = public.keys() & private.keys()
            problems += [problem("stands in both input and eval; one name, one lane", ("eval", name)) for name in both]
        if isinstance(row, list):
            return problems + row
        problems += [problem(message, loc) for loc, message in contract.check(row.input, row.eval)]
        problems += self._refused_mounts(row, problem)
        problems += self._private_collisions(row, contract, problem)
        return problems or row

    def _private_collisions(
        self, row: AnyRow, contract: Family, problem: Callable[[str, Loc], Problem]
    ) -> Iterator[Problem]:
        """Private values and files of one lane that would appear at one place; the same file twice is one file."""
        files = [(str(loc[1]), ref) for _, loc, ref in file_refs(row, self.manifest) if loc[0] == "eval"]
        undeclared = (row.eval.__pydantic_extra__ or {}).keys()
        if not files and not undeclared:
            return
        places: dict[Visibility, set[tuple[PurePosixPath, str]]] = {}
        for name in row.eval.model_fields_set | undeclared:
            lane = contract.lanes.get(name, Visibility.HIDDEN)
            places.setdefault(lane, set()).add((PurePosixPath(f"{name}.json"), ""))
        for name, ref in files:
            lane = contract.lanes.get(name, Visibility.HIDDEN)
            places.setdefault(lane, set()).add((PurePosixPath(ref.mount or ref.path), ref.path))
        for lane_places in places.values():
            try:
                check_collisions(place for place, _ in lane_places)
            except PathRefused as error:
                yield problem(str(error), ("eval",))

    @staticmethod
    def _refused_mounts(row: AnyRow, problem: Callable[[str, Loc], Problem]) -> Iterator[Problem]:
        mounts = [PurePosixPath(asset.mount or asset.path) for asset in row.assets]
        for number, mount in enumerate(mounts):
            try:
                check_mount(mount)
            except PathRefused as error:
                yield problem(str(error), ("assets", number, "mount"))
        try:
            check_collisions(mounts)
        except PathRefused as error:
            yield problem(str(error), ("assets",))


def _with_defaults(value: dict[str, Any], family: str, environment: dict[str, Any]) -> dict[str, Any]:
    """The row with the manifest's family and environment filled in, key by key."""
    own = value.get("environment", {})
    if not isinstance(own, dict):
        return value | {"family": family}
    combined = dict(environment)
    for key, item in own.items():
        below = combined.get(key)
        combined[key] = below | item if isinstance(below, dict) and isinstance(item, dict) else item
    return value | {"family": family, "environment": combined}


class _Assets:
    """Looks at every file that rows name, once: it must lie beneath its root and be plain all the way down."""

    def __init__(self, directory: Path, rows: RowChecker) -> None:
        self.directory = directory
        self.rows = rows
        self.digests: dict[str, str] = {}
        self.faults: dict[str, str] = {}

    def check(self, row: AnyRow, line: int) -> None:
        for root, loc, ref in file_refs(row, self.rows.manifest):
            key = file_key(root, ref)
            if key not in self.digests and key not in self.faults:
                try:
                    with _fs.open_directory(self.directory) as base:
                        self.digests[key] = _fs.tree_digest(
                            base, PurePosixPath(key), MAX_ASSET_ENTRIES, MAX_ASSET_BYTES
                        )
                except _fs.UnsafeEntry as error:
                    self.faults[key] = str(error)
                except OSError as error:
                    self.faults[key] = f"{key} {os_reason(error)}"
            if key in self.faults:
                self.rows.report([Problem(self.rows.file, line, dotted((*loc, "path")), self.faults[key])])
