"""A run as a log that Inspect reads: every attempt is a sample, its number the epoch. What was judged is the model's
output, code and patches as one fenced block, and exactly so in `metadata.securebench`: whoever grades the log again
takes that. Targets are empty, since they are nobody's to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from securebench import _json
from securebench.harnesses.sample_layouts.inspect_logs import OURS
from securebench.reports.export.attempts import Attempt, attempts_of, model_of
from securebench.reports.runs import Run
from securebench.reports.scores import score_of

SCORER = "securebench"
_VERSION = 2


def log_pieces(run: Run) -> Iterator[str]:
    """One JSON document. Raises StoreError, IntegrityError."""
    head, model = _json.dumps_ascii(_header(run)).removesuffix("}"), model_of(run)
    yield f'{head},"samples":['
    for number, attempt in enumerate(attempts_of(run)):
        yield (",\n" if number else "\n") + _json.dumps_ascii(_sample(attempt, model))
    yield "\n]}\n"


def _header(run: Run) -> dict[str, Any]:
    plan = run.plan
    whole = len(run.rows) == plan.total and not run.summary.errors
    started = plan.created_at.replace("Z", "+00:00")
    return {
        "version": _VERSION,
        "status": "success" if whole else "cancelled",
        "eval": {
            "eval_id": plan.digest.removeprefix("sha256:")[:22],
            "run_id": plan.run_id,
            "created": started,
            "task": plan.benchmark.id,
            "task_id": plan.pack_digest.removeprefix("sha256:")[:22],
            "task_version": plan.benchmark.version,
            "dataset": {
                "name": plan.benchmark.id,
                "samples": len(plan.tasks),
                "sample_ids": [task.id for task in plan.tasks],
            },
            "model": model_of(run),
            "config": {"epochs": run.summary.attempts},
            "scorers": [{"name": SCORER}],
            "metadata": {"securebench": plan.securebench, "pack_digest": plan.pack_digest, "seal": run.seal_status},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(run),
        "stats": {"started_at": started, "completed_at": started, "model_usage": {}},
    }


def _results(run: Run) -> dict[str, Any]:
    estimate = score_of(run.label, run.rows).estimate
    metrics = {} if estimate is None else {"accuracy": {"name": "accuracy", "value": estimate.mean}}
    judged = sum(row.judged for row in run.rows)
    return {
        "total_samples": run.plan.total,
        "completed_samples": judged,
        "scores": [{"name": SCORER, "scorer": SCORER, "scored_samples": judged, "metrics": metrics}],
    }


def _sample(attempt: Attempt, model: str) -> dict[str, Any]:
    row, said = attempt.row, _said(attempt)
    started, _, ended = attempt.times()
    answer = {"role": "assistant", "content": said, "source": "generate", "model": row.model or model}
    messages = [{"role": "user", "content": attempt.question, "source": "input"}]
    sample = {
        "id": row.task_id,
        "epoch": row.attempt,
        "input": attempt.question,
        "choices": attempt.choices or None,
        "target": "",
        "messages": messages if said is None else [*messages, answer],
        "output": {
            "model": row.model or model,
            "choices": [] if said is None else [{"message": answer, "stop_reason": "stop"}],
            "completion": said or "",
        },
        "scores": _scores(attempt),
        "metadata": {
            "family": row.family,
            "tags": list(row.tags),
            "status": row.status,
            "assurance": row.assurance,
            OURS: _exact(attempt),
        },
        "started_at": started,
        "completed_at": ended,
        "total_time": (row.produce_seconds or 0.0) + (row.verify_seconds or 0.0),
        "error": _error(row.failure_message) if row.status == "error" else None,
    }
    return {name: value for name, value in sample.items() if value is not None}


def _exact(attempt: Attempt) -> dict[str, str]:
    """What was judged, under the key that a sample has it under."""
    if attempt.patch is not None:
        return {"model_patch": attempt.patch}
    return {} if attempt.text is None else {"solution": attempt.text}


def _said(attempt: Attempt) -> str | None:
    if attempt.patch is not None:
        return _fenced(attempt.patch, "diff")
    return _fenced(attempt.text) if attempt.text is not None and attempt.is_code else attempt.text


def _fenced(text: str, language: str = "") -> str:
    """One block, whose fence nothing in it closes."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}\n"


def _scores(attempt: Attempt) -> dict[str, Any] | None:
    row = attempt.row
    if row.score is None:
        return None
    why = ": ".join(filter(None, (row.failure_reason, row.failure_message)))
    return {SCORER: {"value": row.score, "explanation": why or "passed", "metadata": {"passed": row.passed}}}


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}
