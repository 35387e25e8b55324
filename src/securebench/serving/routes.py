"""The endpoints: what each takes and gives. The server answers by this table, and OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from securebench._schema import ClosedModel
from securebench.serving.access import Refusal
from securebench.serving.models import BatchLine, BatchRequest, GradeRequest, State, TaskList, Verdict

JSON = "application/json"
LINES = "application/x-ndjson"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `answer` is the model of its body, or of each line of it; None for text and plain JSON."""

    name: str
    method: str
    path: str
    summary: str
    answer: type[ClosedModel] | None = None
    media: str = JSON
    request: type[ClosedModel] | None = None
    problems: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))


_ALWAYS = {
    400: "Not a well-formed HTTP request.",
    401: "Without the token.",
    408: "The request took too long to arrive.",
    421: "Asked for under a name this server does not go by.",
    431: "The head of the request is too large.",
    500: "The server failed. Nothing was scored.",
}
_BODY = {
    413: "More bytes, or more candidates, than a request may have.",
    415: "Not application/json, or compressed.",
    422: "Not a request of this form, or not a candidate of that task.",
}
_JUDGING = {
    404: "The pack has no such task.",
    429: "Too much is waiting or under way; come back after Retry-After seconds.",
    503: "The host or the pack failed, or the server starts or stops. Nothing was scored.",
}

ROUTES = (
    Route(
        "grade", "POST", "/v1/grade", "The verdict on one candidate.", Verdict, request=GradeRequest,
        problems=MappingProxyType({**_ALWAYS, **_BODY, **_JUDGING, 504: "No verdict in time. Nothing was scored."}),
    ),
    Route(
        "grade_batch", "POST", "/v1/grade/batch",
        "Verdicts on many candidates: one JSON line each, in order of completion, with its number in the request.",
        BatchLine, LINES, BatchRequest, MappingProxyType({**_ALWAYS, **_BODY, **_JUDGING}),
    ),
    Route(
        "list_tasks", "GET", "/v1/tasks", "The tasks of the pack.", TaskList,
        problems=MappingProxyType({**_ALWAYS, 503: "The server starts."}),
    ),
    Route("live", "GET", "/healthz", "Whether the server answers at all.", State, problems=MappingProxyType(_ALWAYS)),
    Route(
        "ready", "GET", "/readyz", "Whether candidates are judged now.", State,
        problems=MappingProxyType({**_ALWAYS, 503: "It starts or stops, or has failed."}),
    ),
    Route(
        "metrics", "GET", "/metrics", "Counters in the text format of Prometheus.", None, METRICS,
        problems=MappingProxyType(_ALWAYS),
    ),
    Route("openapi", "GET", "/openapi.json", "This description.", problems=MappingProxyType(_ALWAYS)),
)  # fmt: skip


def route_for(method: str, target: str) -> Route:
    """The endpoint that was asked for, letter by letter. Raises Refusal."""
    path, query, _ = target.partition("?")
    here = [route for route in ROUTES if route.path == path]
    if not here:
        raise Refusal(404, "not_found", "there is nothing at this path; see /openapi.json")
    if query:
        raise Refusal(400, "bad_request", "no endpoint takes a query")
    for route in here:
        if route.method == method:
            return route
    raise Refusal(
        405, "method_not_allowed", f"use {here[0].method}", ("Allow", ", ".join(route.method for route in here))
    )
