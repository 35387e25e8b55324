"""Questions and answers in the words of each API; whatever an endpoint sends is an answer or is not one."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.egress.providers.loading import load_provider
from securebench.errors import ConfigError
from securebench.harnesses.chat_api import (
    DEFAULT_MAX_TOKENS,
    Answer,
    NotAnAnswer,
    Question,
    body_for,
    endpoint_for,
    error_words,
    read_answer,
)

ENDPOINTS = {endpoint.kind: endpoint for endpoint in load_provider("openai").endpoints}
ENDPOINTS["messages"] = endpoint_for(load_provider("anthropic"))
PLAIN = Question("m", "Go.")
FULL = Question("m", "Go.", system="Be brief.", temperature=0.5, max_tokens=7)
USER = {"role": "user", "content": "Go."}


@pytest.mark.parametrize(
    ("provider", "question", "path", "body"),
    [
        ("openai_compatible", PLAIN, "/chat/completions", {"messages": [USER]}),
        (
            "openai_compatible",
            FULL,
            "/chat/completions",
            {
                "messages": [{"role": "system", "content": "Be brief."}, USER],
                "temperature": 0.5,
                "max_tokens": 7,
            },
        ),
        (
            "openai",
            Question("m", "Go.", max_tokens=7),
            "/chat/completions",
            {"messages": [USER], "max_completion_tokens": 7},
        ),
        ("anthropic", PLAIN, "/v1/messages", {"messages": [USER], "max_tokens": DEFAULT_MAX_TOKENS}),
        (
            "anthropic",
            FULL,
            "/v1/messages",
            {"system": "Be brief.", "messages": [USER], "temperature": 0.5, "max_tokens": 7},
        ),
    ],
)
def test_bodies(provider: str, question: Question, path: str, body: dict[str, Any]) -> None:
    described = load_provider(provider)
    endpoint = endpoint_for(described)
    assert endpoint.path == path
    assert body_for(question, endpoint, described) == {"model": "m"} | body


def test_a_provider_of_the_responses_api_alone_is_asked_there() -> None:
    openai = load_provider("openai")
    alone = openai.model_copy(update={"endpoints": (ENDPOINTS["responses"],)})
    body = body_for(FULL, endpoint_for(alone), alone)
    assert (body["instructions"], body["input"], body["max_output_tokens"]) == ("Be brief.", [USER], 7)
    without = openai.model_copy(update={"endpoints": (ENDPOINTS["models"],)})
    with pytest.raises(ConfigError, match="no endpoint for chat"):
        endpoint_for(without)


def chat(message: Any, **more: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}]} | more


@pytest.mark.parametrize(
    ("kind", "body", "answer"),
    [
        ("chat", chat({"content": "yes"}), Answer("yes", "m-1", "stop")),
        ("chat", chat({"content": None}), Answer("", "m-1", "stop")),
        ("chat", chat({}), Answer("", "m-1", "stop")),
        ("chat", chat({"content": "", "tool_calls": [{"id": "x"}]}), Answer("", "m-1", "stop")),
        ("chat", chat({"content": None, "refusal": "no"}), Answer("", "m-1", "stop", "no")),
        (
            "chat",
            chat(
                {
                    "content": [
                        {"type": "text", "text": "a"},
                        {"type": "image", "url": "x"},
                        {"type": "text", "text": "b"},
                    ]
                }
            ),
            Answer("ab", "m-1", "stop"),
        ),
        ("chat", {"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}, Answer("a", None, None)),
        ("chat", chat({"content": "a"}, model=7), Answer("a", None, "stop")),
        (
            "messages",
            {
                "type": "message",
                "model": "c",
                "stop_reason": "max_tokens",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b"},
                ],
            },
            Answer("ab", "c", "max_tokens"),
        ),
        ("messages", {"type": "message", "content": []}, Answer("", None, None)),
        (
            "responses",
            {
                "model": "r",
                "status": "completed",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
                ],
            },
            Answer("a", "r", "completed"),
        ),
        (
            "responses",
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []},
            Answer("", None, "max_output_tokens"),
        ),
        (
            "responses",
            {"status": "completed", "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]},
            Answer("", None, "completed", "no"),
        ),
    ],
)
def test_answers(kind: str, body: dict[str, Any], answer: Answer) -> None:
    assert read_answer(json.dumps(body).encode(), ENDPOINTS[kind]) == answer


@pytest.mark.parametrize("kind", ["chat", "messages", "responses"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"choices":[]}',
        b'{"choices":[7]}',
        b'{"content":7}',
        b'{"output":{}}',
        b"[" * 9999,
    ],
)
def test_what_is_not_an_answer(kind: str, data: bytes) -> None:
    with pytest.raises(NotAnAnswer):
        read_answer(data, ENDPOINTS[kind])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"error":{"code":"c","type":"t","message":"m"}}', ("c", "m")),
        (b'{"type":"error","error":{"type":"t","message":"m"}}', ("t", "m")),
        (b'{"error":"m"}', ("", "m")),
        (b'{"error":{"code":400,"message":["m"]}}', ("", "")),
        (b"<html>", ("", "")),
        (b"[]", ("", "")),
    ],
)
def test_error_words(data: bytes, words: tuple[str, str]) -> None:
    assert error_words(data) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "type", "text", "output", "status", "error", "refusal", "model"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["chat", "messages", "responses"]))
def test_any_json_is_an_answer_or_is_not_one(value: Any, kind: str) -> None:
    data = json.dumps(value).encode()
    error_words(data)
    with contextlib.suppress(NotAnAnswer):
        assert isinstance(read_answer(data, ENDPOINTS[kind]).text, str)
