"""The document describes what is served: every answer of a real server is one it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
from tests.unit.serving.running import running

from securebench.serving import models
from securebench.serving.limits import ServeLimits
from securebench.serving.openapi import openapi_document
from securebench.serving.routes import ROUTES

ITEM = {"task": "t1", "candidate": "Answer: 42"}
ASKED: list[tuple[str, str, Any, int]] = [
    ("POST", "/v1/grade", ITEM, 200),
    ("POST", "/v1/grade", {"task": "t1", "candidate": {"solution": "Answer: 1"}}, 200),
    ("POST", "/v1/grade", {"task": "t1", "candidate": {"model_reply": "Answer: 42"}}, 200),
    ("POST", "/v1/grade", {"task": "t1", "candidate": {"completion": None}}, 200),
    ("POST", "/v1/grade", {"task": "t1", "candidate": None}, 422),
    ("POST", "/v1/grade", {"task": "t9", "candidate": "x"}, 404),
    ("POST", "/v1/grade", {"task": "t1", "candidate": {"model_patch": "x"}}, 422),
    ("POST", "/v1/grade", {"task": "t1"}, 422),
    ("POST", "/v1/grade", {"task": "t1", "candidate": "x" * 200_000}, 413),
    ("POST", "/v1/grade/batch", {"items": [ITEM, ITEM]}, 200),
    ("POST", "/v1/grade/batch", {"items": [ITEM] * 9}, 413),
    ("POST", "/v1/grade/batch", {"items": [ITEM] * 5}, 429),
    ("POST", "/v1/grade/batch", {"items": [{"task": "t9", "candidate": "x"}]}, 404),
    ("GET", "/v1/tasks", None, 200),
    ("GET", "/healthz", None, 200),
    ("GET", "/readyz", None, 200),
    ("GET", "/metrics", None, 200),
    ("GET", "/openapi.json", None, 200),
    *((route.method, route.path, None, 401) for route in ROUTES),
    *((route.method, route.path, None, 421) for route in ROUTES),
    ("POST", "/v1/grade", None, 415),
    ("GET", "/readyz", b"body", 400),
]


def _check(answer: httpx2.Response, operation: dict[str, Any]) -> None:
    described = operation["responses"][str(answer.status_code)]
    ((media, content),) = described["content"].items()
    assert answer.headers["content-type"] == media
    for name, header in described.get("headers", {}).items():
        assert header["schema"]["type"] == "integer"
        assert int(answer.headers[name]) >= header["schema"]["minimum"]
    reference = content["schema"].get("$ref")
    if reference is None:
        assert content["schema"]["type"] == ("string" if media.startswith("text/") else "object")
        return
    model = getattr(models, reference.rpartition("/")[2])
    lines = answer.text.splitlines() if media == "application/x-ndjson" else [answer.text]
    for line in lines:
        model.model_validate_json(line)


def test_every_answer_is_one_that_the_document_describes(tmp_path: Path) -> None:
    async def main() -> set[tuple[str, int]]:
        seen = set()
        limits = ServeLimits(body_bytes=100_000, batch=8, queue=4)
        async with running(tmp_path, limits) as here, here.client() as client:
            document = (await client.get("/openapi.json")).json()
            assert document == json.loads(json.dumps(openapi_document()))
            for method, path, body, status in ASKED:
                headers = {"Host": "evil.example"} if status == 421 else {}
                headers |= {"Authorization": "Bearer wrong"} if status == 401 else {}
                how = {"content": body} if isinstance(body, bytes) else {"json": body} if body is not None else {}
                answer = await client.request(method, path, headers=headers, **how)  # type: ignore[arg-type]
                assert answer.status_code == status, (method, path, status, answer.text)
                _check(answer, document["paths"][path][method.lower()])
                seen.add((path, status))
        return seen

    seen = anyio.run(main)
    assert {path for path, status in seen if status == 200} == set(openapi_document()["paths"])


def test_document_is_whole() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1.")
    assert document["security"] == [{"token": []}]
    schemas = document["components"]["schemas"]
    references = set(_references(document))
    assert {reference.rpartition("/")[2] for reference in references} <= schemas.keys()
    for name in ("GradeRequest", "BatchRequest", "Verdict", "Problem", "TaskList"):
        assert schemas[name]["additionalProperties"] is False, name
        assert schemas[name]["required"]
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) == len(ROUTES)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)
