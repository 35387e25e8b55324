"""A pack as a data set of Inspect: what an agent may know of each task, asked in the words of the chat harness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from inspect_ai.dataset import MemoryDataset, Sample

from securebench._schema import suggest
from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import BenchmarkPack, candidate_kinds, find_pack, load_benchmark_pack
from securebench.errors import ConfigError
from securebench.families.base import CandidateKind
from securebench.harnesses.prompts import Prompt
from securebench.resources import Component
from securebench.tasks import SecureBenchTask

_COMPARED = 2000  # ids that a misspelt one is compared with
_SHOWN = 5


def pack_dataset(pack: str | Path, tasks: str | Sequence[str] | None = None) -> MemoryDataset:
    """The tasks of a pack (a directory, its manifest, or its tasks file) as samples: all of them, or those with these
    ids. Samples have no target: what is right stays with the scorer.

    Raises ConfigError, also for tasks that collect a workspace, which no reply of a model is."""
    return dataset_of(load_benchmark_pack(*find_pack(Path(pack))), tasks)


def dataset_of(loaded: BenchmarkPack, tasks: str | Sequence[str] | None = None) -> MemoryDataset:
    """`pack_dataset` of a pack that is loaded."""
    indexes = _chosen(loaded, [tasks] if isinstance(tasks, str) else tasks)
    _refuse_workspaces(loaded, indexes)
    prompt = Prompt.load("chat")
    samples = [_sample(task, prompt) for task in compile_benchmark_pack(loaded, indexes=indexes)]
    return MemoryDataset(samples, name=loaded.manifest.id)


def _sample(task: SecureBenchTask, prompt: Prompt) -> Sample:
    kind, payload = CandidateKind(task.candidate_kind), task.agent_payload()
    choices = payload["input"].get("choices")
    return Sample(
        id=task.id,
        input=prompt.render(payload, kind),
        choices=None if choices is None else [str(choice) for choice in choices],
        files=_files(task, kind),
        metadata={
            **payload["metadata"],
            "securebench": {
                "benchmark": f"{task.benchmark_id} {task.benchmark_version}",
                "task_type": task.task_type,
                "candidate": str(kind),
            },
        },
    )


def _files(task: SecureBenchTask, kind: CandidateKind) -> dict[str, str] | None:
    """Files for Inspect's sandbox, where there is one. Not those of repositories: agents of ours get these without
    their history, and Inspect would copy it."""
    if kind is CandidateKind.PATCH:
        return None
    return {str(file.mount): str(file.root / file.path) for file in task.view_for(Component.AGENT).files()} or None


def _chosen(pack: BenchmarkPack, tasks: Sequence[str] | None) -> Sequence[int]:
    if tasks is None:
        return range(len(pack))
    places = {entry.id: index for index, entry in enumerate(pack.entries)}
    for name in map(str, tasks):
        if name not in places:
            raise ConfigError(f"the pack has no task {name[:100]!r}{suggest(name[:100], islice(places, _COMPARED))}")
    return sorted({places[str(name)] for name in tasks})


def _refuse_workspaces(pack: BenchmarkPack, indexes: Sequence[int]) -> None:
    """Said once for all of them: a data set that left them out would be another benchmark."""
    kinds = candidate_kinds(pack)
    names = [name for index in indexes if kinds[name := pack.entries[index].id] is CandidateKind.WORKSPACE]
    if names:
        shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
        raise ConfigError(
            f"{len(names)} of {len(indexes)} tasks collect a workspace, which no reply of a model is ({shown}): run "
            "them with an agent harness, export them with `securebench convert harbor`, or name the others in `tasks`"
        )
