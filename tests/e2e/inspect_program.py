"""Evaluations by the real Inspect, with a model that replies what it is told; started by tests in a process of its own.

Reads a JSON object of jobs. Each has a pack, ids of tasks, rounds of replies by id, a directory for logs, and files to
change once the scorer has the pack. Prints for each the samples, and for each round how it ended and the scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from securebench.inspect_adapter import pack_dataset, pack_task


def main() -> None:
    json.dump({name: _job(asked) for name, asked in json.load(sys.stdin).items()}, sys.stdout)


def _job(asked: dict[str, Any]) -> dict[str, Any]:
    samples = list(pack_dataset(asked["pack"], asked.get("tasks")))
    rounds = [_round(asked, samples, number) for number in range(len(asked["rounds"]))]
    return {"samples": [json.loads(sample.model_dump_json()) for sample in samples], "rounds": rounds}


def _round(asked: dict[str, Any], samples: list[Any], number: int) -> dict[str, Any]:
    replies = {sample.input: asked["rounds"][number].get(sample.id, "") for sample in samples}

    def reply(messages: Any, *_: Any) -> ModelOutput:
        # With a usage of its own the mock does not count tokens, which it cannot do without a network.
        output = ModelOutput.from_content("mockllm", replies[messages[-1].text])
        return output.model_copy(update={"usage": ModelUsage()})

    task = pack_task(asked["pack"], asked.get("tasks"), processes=asked.get("processes", 0))
    for path, text in asked.get("changed", {}).items():
        Path(path).write_text(text)
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    directory = f"{asked['logs']}/{number}"
    (log,) = evaluate(task, model=model, display="none", log_dir=directory, log_format="json")
    return _shown(log)


def _shown(log: EvalLog) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for sample in log.samples or ():
        for score in (sample.scores or {}).values():
            scores[str(sample.id)] = json.loads(score.model_dump_json())
    faults = {str(sample.id): sample.error.message for sample in log.samples or () if sample.error}
    means = {} if log.results is None else {name: one.value for name, one in log.results.scores[0].metrics.items()}
    return {"status": log.status, "scores": scores, "faults": faults, "metrics": means}


if __name__ == "__main__":
    main()
