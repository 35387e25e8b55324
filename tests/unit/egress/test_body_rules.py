"""Judging a body is pure: any value in, a body to send or a refusal out, never anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from securebench.egress.broker import ModelAccess
from securebench.egress.broker.body_rules import DEFAULT_OUTPUT, AdmittedBody, judge_body, judge_value
from securebench.egress.broker.refusal import Refused, error_body
from securebench.egress.providers import load_provider, provider_names

ACCESSES = {
    name: ModelAccess(load_provider(name), "m", "https://x.example", "k" * 20, prices={}) for name in provider_names()
}
PLACES = [(access, end) for access in ACCESSES.values() for end in access.provider.endpoints if end.body]

words = st.sampled_from(
    [
        "type",
        "role",
        "content",
        "text",
        "tools",
        "tool_choice",
        "messages",
        "input",
        "url",
        "file_id",
        "function",
        "m",
        "user",
        "stream",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


def judged_or_refused(access: ModelAccess, endpoint, data: bytes) -> AdmittedBody | Refused:
    try:
        return judge_body(access, endpoint, data)
    except Refused as refused:
        return refused


@pytest.mark.parametrize("access, endpoint", PLACES, ids=lambda value: getattr(value, "path", ""))
@settings(max_examples=60)
@given(data=st.data())
def test_any_body_is_sent_as_judged_or_refused(access: ModelAccess, endpoint, data: st.DataObject) -> None:
    fields = access.provider.bodies[endpoint.body].fields
    body = data.draw(st.dictionaries(st.sampled_from(fields), values, max_size=5)) | {"model": "m"}
    admitted = judged_or_refused(access, endpoint, json.dumps(body).encode())
    if isinstance(admitted, Refused):
        assert 400 <= admitted.status < 500
        json.loads(error_body(access.provider, admitted.kind, admitted.message))
        return
    sent = json.loads(admitted.data)
    added = sent.pop("stream_options", None) if body.get("stream") is True else None
    assert added is None or added["include_usage"] is True or "stream_options" in body
    assert {name: value for name, value in sent.items() if name != "stream_options"} == {
        name: value for name, value in body.items() if name != "stream_options"
    }


def judged(body: dict[str, Any], path: str = "/chat/completions") -> AdmittedBody:
    access = ACCESSES["openai"]
    endpoint = next(end for end in access.provider.endpoints if end.path == path)
    return judge_value(access, endpoint, {"model": "m"} | body)


@pytest.mark.parametrize(
    "body, most",
    [
        ({}, DEFAULT_OUTPUT),
        ({"max_tokens": 50}, 50),
        ({"max_tokens": 50, "max_completion_tokens": 20}, 20),
        ({"max_tokens": 50, "n": 3}, 150),
        ({"max_tokens": -1}, DEFAULT_OUTPUT),
        ({"max_tokens": True}, DEFAULT_OUTPUT),
        ({"max_tokens": 50, "n": 0}, 50),
    ],
)
def test_a_request_reserves_what_it_may_use(body: dict[str, Any], most: int) -> None:
    assert judged(body).output_tokens == most


def test_a_refusal_names_the_feature_that_would_allow_it() -> None:
    for body, feature in (
        ({"tools": [{"type": "web_search_preview"}], "input": "x"}, "web_search"),
        ({"background": True}, "background"),
        ({"previous_response_id": "r"}, "server_state"),
        ({"input": [{"type": "input_file", "file_id": "f"}]}, "files"),
        ({"input": [{"type": "input_image", "image_url": "https://x"}]}, "remote_content"),
    ):
        with pytest.raises(Refused, match=f"allow the feature {feature}"):
            judged(body, "/responses")
    with pytest.raises(Refused) as caught:
        judged({"nonsense": 1})
    assert "feature" not in caught.value.message


@pytest.mark.parametrize("name", provider_names())
def test_errors_have_the_shape_of_the_provider(name: str) -> None:
    value = json.loads(error_body(load_provider(name), "some_type", 'a "message"'))
    assert value["error"]["message"] == 'a "message"'
    assert value["error"]["type"] == "some_type"
    assert (value.get("type") == "error") is (name == "anthropic")
