"""The counters of a server in the text format of Prometheus. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from securebench.serving.service import Service

Sample = tuple[Mapping[str, str], float]


def metrics_text(service: Service) -> str:
    """How it stands now."""
    counts, grader = service.counts, service.grader
    requests = [
        ({"endpoint": name, "status": str(status)}, number)
        for (name, status), number in sorted(counts.requests.items())
    ]
    lines = [
        *_metric("requests_total", "counter", "Requests answered.", requests),
        *_metric("requests_lost_total", "counter", "Requests whose client went away first.", [({}, counts.lost)]),
        *_metric("connections_total", "counter", "Connections accepted.", [({}, counts.connections)]),
        *_metric("connections", "gauge", "Connections open.", [({}, service.connections)]),
        *_metric("candidates_pending", "gauge", "Candidates judged or waiting.", [({}, service.pending)]),
        *_metric("candidates_most", "gauge", "Candidates that may be.", [({}, service.limits.queue)]),
        *_metric("ready", "gauge", "1 where candidates are judged.", [({}, int(service.state.status == "ok"))]),
    ]
    if grader is not None:
        now = grader.metrics
        statuses = [({"status": status}, number) for status, number in sorted(now.statuses.items())]
        lines += _metric("verdicts_total", "counter", "Verdicts.", statuses)
        lines += _metric("verdict_seconds_sum", "counter", "Seconds until verdicts, in all.", [({}, counts.seconds)])
        lines += _metric("verdict_seconds_count", "counter", "Verdicts that were waited for.", [({}, counts.verdicts)])
        lines += _metric("verdict_errors_total", "counter", "Faults of host or pack.", [({}, now.errors)])
        lines += _metric("verdicts_cancelled_total", "counter", "Given up by who asked.", [({}, now.cancelled)])
        lines += _metric("candidates_running", "gauge", "Candidates being judged.", [({}, now.running)])
        lines += _metric("processes", "gauge", "Processes that judge.", [({}, now.processes)])
        lines += _metric("process_restarts_total", "counter", "Processes that were replaced.", [({}, now.restarts)])
    return "".join(f"{line}\n" for line in lines)


def _metric(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> list[str]:
    full = f"securebench_{name}"
    rows = [f"{full}{_labels(labels)} {value!r}" for labels, value in samples]
    return [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}", *rows]


def _labels(labels: Mapping[str, str]) -> str:
    """All values are words of our own, so nothing in them needs an escape."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
