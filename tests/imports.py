"""Sources for tests of importers: rows in, the pack and the report out.

pack, report = imported(tmp_path, "gsm8k", [{"question": "1 + 1?", "answer": "#### 2"}])
(row,) = rows_of(pack)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from securebench.benchmark_pack import BenchmarkPack
from securebench.importers.base import Request
from securebench.importers.importing import ImportReport, Naming, import_pack
from securebench.importers.prompts import load_prompt
from securebench.importers.registry import check_settings, find_format
from securebench.importers.sources import open_source


def jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write rows as JSON lines; a text is a line as it stands."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write rows as Parquet, through JSON that DuckDB reads."""
    import duckdb

    source = jsonl(path.with_suffix(".ndjson"), rows)
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"copy (select * from read_json('{source}', format='newline_delimited')) to '{path}'")
    source.unlink()
    return path


def imported(
    tmp_path: Path,
    name: str,
    source: Path | str | Iterable[Any],
    *,
    prompt: str = "default",
    examples: Path | None = None,
    shots: int | None = None,
    mapping: str | None = None,
    only: tuple[str, ...] = (),
    target: str = "pack",
    limit: int | None = None,
    naming: Naming | None = None,
    **settings: str,
) -> tuple[BenchmarkPack, ImportReport]:
    """Import a source, or rows that are written as JSON lines first."""
    if not isinstance(source, Path | str):
        source = jsonl(tmp_path / f"{name}.jsonl", source)
    chosen = find_format(name)
    (directory := tmp_path / target).mkdir()

    def run(opened_examples: Any) -> tuple[BenchmarkPack, ImportReport]:
        request = Request(
            prompt=load_prompt(name, prompt, chosen.family),
            settings=check_settings(chosen, settings),
            examples=opened_examples,
            shots=shots,
            mapping=None if mapping is None else ("mapping.yaml", mapping.encode()),
        )
        with open_source(str(source), only) as opened:
            return import_pack(chosen, opened, directory, request, naming=naming, limit=limit)

    if examples is None:
        return run(None)
    with open_source(str(examples)) as opened:
        return run(opened)


def rows_of(pack: BenchmarkPack) -> list[dict[str, Any]]:
    """The rows as they stand in `tasks.jsonl`."""
    return [json.loads(line) for line in pack.tasks_path.read_text("utf-8").splitlines()]


def reasons(report: ImportReport) -> list[str]:
    """Why rows were left out, with their lines."""
    return [f"{one.place.line}: {one.reason}" for one in report.left_out]
