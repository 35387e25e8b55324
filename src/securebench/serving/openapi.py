"""The OpenAPI document of the service, from the routes and the models that check what comes and goes."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from pydantic.json_schema import models_json_schema

from securebench.serving.models import Problem
from securebench.serving.routes import ROUTES, Route

_REFERENCE = "#/components/schemas/{model}"


@cache
def openapi_document() -> dict[str, Any]:
    """OpenAPI 3.1, as plain JSON."""
    models = {route.answer for route in ROUTES} | {route.request for route in ROUTES} | {Problem}
    wanted = sorted((model for model in models if model is not None), key=lambda model: model.__name__)
    _, schemas = models_json_schema([(model, "validation") for model in wanted], ref_template=_REFERENCE)
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SecureBench",
            "version": version("securebench"),
            "description": "Verdicts on candidates for the tasks of one benchmark pack.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas["$defs"].items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _answer(route.summary, route.media, _schema(route))}
    for status, meaning in sorted(route.problems.items()):
        # Whoever asks how the server stands is told in the same words, whether it is well or not.
        model = route.answer if route.answer is not None and status == 503 and route.name == "ready" else Problem
        answers[str(status)] = _answer(meaning, "application/json", _ref(model))
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            header = {"description": "Seconds.", "required": True, "schema": {"type": "integer", "minimum": 1}}
            answers[str(status)]["headers"] = {"Retry-After": header}
    operation: dict[str, Any] = {"operationId": route.name, "summary": route.summary, "responses": answers}
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _ref(route.request)}}}
    return operation


def _answer(meaning: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": meaning, "content": {media: {"schema": schema}}}


def _schema(route: Route) -> dict[str, Any]:
    if route.answer is not None:
        return _ref(route.answer)
    return {"type": "string" if route.media.startswith("text/") else "object"}


def _ref(model: type) -> dict[str, Any]:
    return {"$ref": _REFERENCE.format(model=model.__name__)}
