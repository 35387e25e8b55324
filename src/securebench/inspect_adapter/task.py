"""A whole task of Inspect: `inspect eval securebench/pack_task -T pack=my-pack`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspect_ai import Task, task

from securebench.benchmark_pack import find_pack, load_benchmark_pack
from securebench.inspect_adapter.dataset import dataset_of
from securebench.inspect_adapter.scoring import pack_scorer


@task
def pack_task(
    pack: str | Path,
    tasks: str | Sequence[str] | None = None,
    config: str | Path | None = None,
    processes: int | None = None,
) -> Task:
    """The tasks of a pack, asked once each (Inspect's `generate`, unless another solver is named), judged by its own
    verifiers. See `pack_dataset` and `pack_scorer`. Raises ConfigError."""
    loaded = load_benchmark_pack(*find_pack(Path(pack)))
    return Task(
        dataset=dataset_of(loaded, tasks),
        scorer=pack_scorer(pack, config, processes),
        name=loaded.manifest.id,
        version=loaded.manifest.version,
        metadata={"securebench": {"pack": loaded.manifest.id, "digest": loaded.digest}},
    )
