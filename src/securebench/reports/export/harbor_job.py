"""A run as the directory of a job of Harbor: `result.json` of the job, and for every attempt a trial with
`result.json`, `config.json`, its reward, its trajectory, and what was judged among its artifacts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from securebench import _json
from securebench._canonical import digest_bytes
from securebench.harnesses.sample_layouts.harbor_jobs import HOST_FAILED
from securebench.reports.export.attempts import Attempt, attempts_of, file_name, model_of, moment
from securebench.reports.runs import Run

_ANSWER, _PROGRAM, _PATCH = "answer.txt", "candidate.txt", "candidate.patch"


def job_files(run: Run) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file. Raises StoreError, IntegrityError."""
    ended, rewards = run.rows[0].started_at if run.rows else None, defaultdict[float, list[str]](list)
    for attempt in attempts_of(run):
        name, row = file_name(*attempt.row.key), attempt.row
        yield f"{name}/result.json", _encoded(_trial(run, attempt, name))
        yield f"{name}/config.json", _encoded(_config(run, attempt, name))
        if row.score is not None:
            rewards[row.score].append(name)
            yield f"{name}/verifier/reward.txt", f"{row.score:g}\n".encode()
        for path, content in _contents(attempt):
            yield f"{name}/{path}", content
        last = (row.started_at or 0.0) + (row.produce_seconds or 0.0) + (row.verify_seconds or 0.0)
        ended = max(ended or 0.0, last)
    yield "result.json", _encoded(_job(run, rewards, moment(ended)))


def _contents(attempt: Attempt) -> Iterator[tuple[str, bytes]]:
    document = attempt.trajectory()
    if document is not None:
        yield "agent/trajectory.json", _encoded(document)
    name = {"repo_patch": _PATCH, "code_completion": _PROGRAM, "terminal_task": None}.get(attempt.row.family, _ANSWER)
    if name is None:
        return
    content = attempt.patch if attempt.patch is not None else attempt.text
    if content is not None:
        yield f"artifacts/{name}", content.encode("utf-8", "surrogatepass")
    found = {"status": "failed" if content is None else "ok", "type": "file"}
    yield "artifacts/manifest.json", _encoded([{"source": f"/logs/artifacts/{name}", "destination": name, **found}])


def _trial(run: Run, attempt: Attempt, name: str) -> dict[str, Any]:
    row = attempt.row
    started, produced, verified = attempt.times()
    return {
        "id": str(uuid5(NAMESPACE_URL, f"{run.plan.digest}/{name}")),
        "task_name": row.task_id,
        "trial_name": name,
        "trial_uri": name,
        "task_id": {"path": row.task_id},
        "source": run.plan.benchmark.id,
        "task_checksum": _checksum(attempt),
        "config": _config(run, attempt, name),
        "agent_info": {"name": _agent(run, attempt), "version": "", "model_info": _model(row.model)},
        "agent_result": {
            "n_input_tokens": row.input_tokens,
            "n_cache_tokens": row.cached_tokens,
            "n_output_tokens": row.output_tokens,
            "cost_usd": row.cost_usd,
            "metadata": {"attempt": row.attempt, "assurance": row.assurance, "failure_reason": row.failure_reason},
        },
        "verifier_result": None if row.score is None else {"rewards": {"reward": row.score}},
        "exception_info": _exception(attempt, verified or started),
        "started_at": started,
        "finished_at": verified,
        "agent_execution": {"started_at": started, "finished_at": produced},
        "verifier": {"started_at": produced, "finished_at": verified},
    }


def _checksum(attempt: Attempt) -> str:
    """Of what agents see of the task. That of its row would give away a key of which there are few."""
    seen = [attempt.row.task_id, dict(sorted(attempt.public.items()))]
    return digest_bytes(_json.dumps_ascii(seen).encode()).removeprefix("sha256:")


def _exception(attempt: Attempt, when: str | None) -> dict[str, str] | None:
    """Of an attempt on which the host failed: in Harbor's words it has no reward, and an exception instead."""
    if attempt.row.status != "error":
        return None
    return {
        "exception_type": HOST_FAILED,
        "exception_message": attempt.row.failure_message,
        "exception_traceback": "",
        "occurred_at": when or "1970-01-01T00:00:00+00:00",
    }


def _config(run: Run, attempt: Attempt, name: str) -> dict[str, Any]:
    agent = {"name": _agent(run, attempt), "model_name": attempt.row.model}
    return {"task": {"path": attempt.row.task_id, "source": run.plan.benchmark.id}, "trial_name": name, "agent": agent}


def _agent(run: Run, attempt: Attempt) -> str:
    return attempt.harness or str(run.plan.harness.get("type", ""))[:200]


def _model(name: str | None) -> dict[str, Any] | None:
    return None if name is None else {"name": name, "provider": None}


def _job(run: Run, rewards: dict[float, list[str]], ended: str | None) -> dict[str, Any]:
    summary, agent = run.summary, str(run.plan.harness.get("type", ""))[:200]
    stats = {
        "n_trials": sum(map(len, rewards.values())),
        "n_errors": summary.errors,
        "metrics": [] if summary.score is None else [{"mean": summary.score}],
        "pass_at_k": dict(summary.pass_at_k or {}),
        "reward_stats": {"reward": {str(score): names for score, names in rewards.items()}},
    }
    return {
        "id": str(uuid5(NAMESPACE_URL, run.plan.digest)),
        "started_at": run.plan.created_at,
        "finished_at": ended,
        "n_total_trials": run.plan.total,
        "metadata": {
            "securebench": run.plan.securebench,
            "pack_digest": run.plan.pack_digest,
            "seal": run.seal_status,
        },
        "stats": {
            "n_completed_trials": len(run.rows),
            "n_errored_trials": summary.errors,
            "n_pending_trials": max(0, run.plan.total - len(run.rows)),
            "evals": {f"{agent}__{model_of(run)}__{run.plan.benchmark.id}": stats},
            "cost_usd": summary.cost_usd,
        },
    }


def _encoded(value: Any) -> bytes:
    return (_json.dumps_ascii(value) + "\n").encode()
