"""Requests an agent has no right to make: none of them may reach the provider. The honest one beside them does."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from tests.upstreams import KEY, Agent, agent_of

from securebench.egress.broker import Broker


def play(scene, *arguments, **options) -> None:
    async def main() -> None:
        async with agent_of(*arguments, **options) as agent:
            with anyio.fail_after(120):
                await scene(agent)

    anyio.run(main)


def refused(body: Any, provider: str = "openai", path: str | None = None, **options: Any) -> None:
    """The body comes back refused in the provider's shape and never leaves; without its fault it passes."""

    async def scene(agent: Agent) -> None:
        full = agent.body(**body) if isinstance(body, dict) else body
        response = await agent.post(full, path)
        assert response.status_code in {400, 413}, response.text
        assert response.json()["error"]["message"]
        assert agent.asked == []
        assert agent.session.exchanges[0].refused
        assert agent.session.usage.requests == 0
        assert (await agent.post()).status_code == 200

    play(scene, provider=provider, **options)


def passes(body: dict[str, Any], provider: str = "openai", path: str | None = None, **options: Any) -> None:
    async def scene(agent: Agent) -> None:
        full = agent.body(**body)
        if path == "/responses":
            del full["messages"]
        response = await agent.post(full, path)
        assert response.status_code == 200, response.text
        assert len(agent.asked) == 1

    play(scene, provider=provider, **options)


@pytest.mark.parametrize("key", ["", "x", KEY, "sk-securebench-" + "A" * 43])
def test_a_wrong_placeholder_is_refused_also_the_real_key(key: str) -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post(key=key or "none")).status_code == 401
        assert (await agent.post(x_api_key=key)).status_code == 401  # a right one beside it does not help
        assert agent.asked == []
        assert (await agent.post()).status_code == 200

    play(scene)


def test_no_credential_at_all_is_refused_before_the_body_is_read() -> None:
    async def scene(agent: Agent) -> None:
        head = f"POST {agent.root}/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
        assert b" 401 " in await agent.raw(head.encode(), replies=1)

    play(scene)


def test_the_placeholder_of_one_attempt_is_worth_nothing_in_another() -> None:
    async def scene(agent: Agent) -> None:
        async with agent.broker.session("other") as other:
            assert other.placeholder != agent.session.placeholder
            assert (await agent.post(key=other.placeholder)).status_code == 401
        assert agent.asked == []

    play(scene)


def test_a_placeholder_is_worth_nothing_after_its_attempt() -> None:
    async def scene(agent: Agent) -> None:
        assert (await agent.post()).status_code == 200
        agent.session.close()
        assert (await agent.post()).status_code == 401
        assert (await agent.session.ask(agent.access, "/chat/completions", agent.body())).status == 401
        assert len(agent.asked) == 1

    play(scene)


@pytest.mark.parametrize(
    "target",
    [
        "/openai/v1/files",
        "/openai/v1/chat/completions/",
        "/openai/v1//chat/completions",
        "//openai/v1/chat/completions",
        "/openai/v1/./chat/completions",
        "/openai/v1/models/../chat/completions",
        "/openai/v1/models/..",
        "/openai/v1/chat%2Fcompletions",
        "/openai/v1/%63hat/completions",
        "/openai/v1/chat/completions%00",
        "/openai/v1/chat/completions;x=1",
        "/openai/v1/chat/completions?x=1",
        "/openai/v1/chat/completions?beta=true",
        "/openai/v1/chat/completions#x",
        "/openai/v1/Chat/Completions",
        "/openai/v1\\chat\\completions",
        "/openai/chat/completions",
        "/openai/v1chat/completions",
        "/openai/v1/assistants",
        "/openai/v1/batches",
        "/openai/v1/images/generations",
        "/openai/v1/responses/resp_1",
        "/openai/v1/containers",
        "/openai/v1/vector_stores",
        "/openai/v1/uploads",
        "/anthropic/v1/messages",
        "/v1/chat/completions",
        "/",
        "*",
        "http://api.openai.com/v1/chat/completions",
        "http://127.0.0.1/openai/v1/chat/completions",
        "api.openai.com:443",
    ],
)
def test_a_path_that_is_not_listed_letter_by_letter_is_refused(target: str) -> None:
    async def scene(agent: Agent) -> None:
        got = await agent.raw(agent.request(target=target), seconds=1, replies=1)
        assert got.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), got[:80]
        assert agent.asked == []
        assert b" 200 " in await agent.raw(agent.request(headers="connection: close\r\n"), replies=1)

    play(scene)


@pytest.mark.parametrize(
    "query", ["beta=false", "beta=true&beta=true", "beta", "beta=true&x=1", "BETA=true", "beta=true\t"]
)
def test_a_query_that_is_not_listed_is_refused(query: str) -> None:
    async def scene(agent: Agent) -> None:
        got = await agent.raw(agent.request(target=f"/anthropic/v1/messages?{query}"), seconds=1, replies=1)
        assert got.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
        assert agent.asked == []

    play(scene, provider="anthropic")


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "gpt-5-mini",
        "GPT-5",
        "gpt-5 ",
        " gpt-5",
        "gpt-5\u0000",
        "gpt-5-2025-08-07x",
        "gpt-5-",
        "",
        None,
        5,
        ["gpt-5"],
    ],
)
def test_another_model_is_refused(model: Any) -> None:
    refused({"model": model})


def test_the_dated_snapshot_of_the_model_passes() -> None:
    passes({"model": "gpt-5-2025-08-07"})


def test_a_model_said_twice_is_refused() -> None:
    for text in (
        b'{"model":"gpt-5","model":"gpt-4o","messages":[]}',
        b'{"model":"gpt-5","mod\\u0065l":"gpt-4o","messages":[]}',
    ):
        refused(text)


@pytest.mark.parametrize(
    "field", ["Model", "MODEL", "m\u200bodel", "engine", "deployment", "models", "route", "provider", "plugins"]
)
def test_a_second_way_to_name_a_model_is_refused(field: str) -> None:
    refused({field: "gpt-4o"})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b'{"model":"gpt-5"} {}',
        b'{"model":"gpt-5","temperature":NaN}',
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        b'{"model":"gpt-5","temperature":1e999}',
        b"[" * 100000,
        b'{"model":"gpt-5","messages":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_a_body_that_is_not_one_strict_json_object_is_refused(body: bytes) -> None:
    refused(body)


@pytest.mark.parametrize(
    "tool",
    [
        "web_search",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "web_search_2025_08_26",
        "file_search",
        "code_interpreter",
        "computer_use_preview",
        "computer",
        "image_generation",
        "mcp",
        "shell",
        "tool_search",
        "Web_Search",
        "web_search ",
        "FUNCTION",
        "function\x00",
        "",
        None,
        5,
        ["function"],
        "something_new",
    ],
)
def test_a_tool_the_provider_would_run_is_refused_in_every_spelling(tool: Any) -> None:
    asking = {"tools": [{"type": "function", "name": "f"}, {"type": tool, "name": "t"}], "input": "x"}

    async def scene(agent: Agent) -> None:
        for path in ("/responses", "/chat/completions"):
            body = {"model": "gpt-5"} | asking
            if path != "/responses":
                body["messages"] = body.pop("input") and []
            assert (await agent.post(body, path)).status_code == 400
            nested = [{"type": "namespace", "name": "n", "tools": body["tools"]}]
            assert (await agent.post(body | {"tools": nested}, path)).status_code == 400
        assert agent.asked == []

    play(scene)


@pytest.mark.parametrize(
    "tools",
    [
        "web_search",
        {"type": "web_search"},
        [["web_search"]],
        ["web_search"],
        [{"Type": "web_search", "type": "function"}],
        [{}],
        [None],
    ],
)
def test_tools_of_another_shape_are_refused(tools: Any) -> None:
    refused({"tools": tools})


@pytest.mark.parametrize("kind", ["function", "custom", "local_shell", "apply_patch"])
def test_tools_the_agent_runs_itself_pass(kind: str) -> None:
    passes(
        {"tools": [{"type": kind, "name": "f", "parameters": {"type": "object", "Url": "web_search"}}], "input": "x"},
        path="/responses",
    )


@pytest.mark.parametrize(
    "tool",
    [
        "web_search_20250305",
        "web_fetch_20250910",
        "code_execution_20250522",
        "code_execution_20250825",
        "mcp_toolset",
        "computer_20250124",
        "tool_search_tool_regex_20251119",
        "web_search",
        "server",
        "Bash_20250124",
        "custom ",
    ],
)
def test_server_tools_of_anthropic_are_refused(tool: str) -> None:
    refused({"tools": [{"type": tool, "name": "t"}]}, "anthropic")


@pytest.mark.parametrize(
    "tool",
    [{"name": "t", "input_schema": {}}, {"type": "custom", "name": "t"}, {"type": "bash_20250124", "name": "bash"}],
)
def test_client_tools_of_anthropic_pass(tool: dict[str, Any]) -> None:
    passes({"tools": [tool]}, "anthropic")


@pytest.mark.parametrize(
    "field, value",
    [
        ("mcp_servers", [{"type": "url", "url": "https://x"}]),
        ("container", "c"),
        ("skills", []),
        ("speed", "fast"),
        ("fallback", "x"),
    ],
)
def test_what_runs_at_anthropic_is_refused(field: str, value: Any) -> None:
    refused({field: value}, "anthropic")


@pytest.mark.parametrize(
    "field, value",
    [
        ("background", True),
        ("background", "true"),
        ("background", 1),
        ("previous_response_id", "resp_1"),
        ("conversation", "c"),
        ("prompt", {"id": "p"}),
        ("web_search_options", {}),
        ("service_tier", "priority"),
        ("service_tier", "Auto"),
        ("generate", True),
    ],
)
def test_state_and_work_of_its_own_at_the_provider_is_refused(field: str, value: Any) -> None:
    async def scene(agent: Agent) -> None:
        body = {"model": "gpt-5", "input": "x", "background": False, "store": False}
        assert (await agent.post(body | {field: value}, "/responses")).status_code == 400
        assert agent.asked == []
        assert (await agent.post(body, "/responses")).status_code == 200

    play(scene)


def _user(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


URL = "https://attacker.example/x"


@pytest.mark.parametrize(
    "parts",
    [
        {"type": "input_image", "image_url": URL},
        {"type": "input_image", "image_url": {"url": URL}},
        {"type": "input_image", "image_url": "HTTP://attacker.example"},
        {"type": "input_image", "image_url": " data:image/png,x"},
        {"type": "input_image", "Image_URL": URL},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_url": URL},
        {"type": "input_file", "file_id": "file-1"},
        {"type": "input_file", "file_data": URL},
        {"type": "input_file", "file_data": [URL]},
        {"type": "input_image", "image_url": [URL]},
        {"type": "input_image", "image_url": [[{"type": "input_text", "url": URL}]]},
        {"type": "input_image", "image_url": True},
        {"type": "input_text", "text": "x", "extra": [{"type": "input_image", "image_url": URL}]},
        {"type": "item_reference", "id": "msg_1"},
        {"id": "msg_1"},
        {"type": "web_search_call", "action": {"type": "search", "query": "x"}},
        {"type": "code_interpreter_call", "container_id": "c"},
        {"type": "mcp_call"},
        {"type": "something_new"},
        {"type": ""},
        {"type": None},
        {"type": ["input_text"]},
    ],
)
def test_content_to_be_fetched_or_found_by_the_provider_is_refused(parts: dict[str, Any]) -> None:
    async def scene(agent: Agent) -> None:
        for value in (_user(parts), [parts], [{"type": "function_call_output", "call_id": "c", "output": [parts]}]):
            assert (await agent.post({"model": "gpt-5", "input": value}, "/responses")).status_code == 400
        assert agent.asked == []

    play(scene)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "url", "url": URL}},
        {"type": "document", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": {"type": "base64", "url": URL}},
        {"type": "container_upload", "file_id": "f"},
        {"type": "server_tool_use", "name": "web_search", "input": {}},
        {"type": "mcp_tool_use"},
        {"type": "tool_result", "content": [{"type": "image", "source": {"type": "url", "url": URL}}]},
    ],
)
def test_content_to_be_fetched_by_anthropic_is_refused(part: dict[str, Any]) -> None:
    refused({"messages": _user(part)}, "anthropic")
    refused({"system": [part]}, "anthropic")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": f"see {URL}", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}},
        {
            "type": "tool_use",
            "id": "t",
            "name": "fetch",
            "input": {"url": URL, "type": "anything", "UPPER": [{"id": 1}]},
        },
        {"type": "tool_result", "tool_use_id": "t", "content": "text"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
    ],
)
def test_content_that_is_all_there_passes(part: dict[str, Any]) -> None:
    passes({"messages": _user(part)}, "anthropic")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": URL},
        {"type": "video_url", "video_url": {"url": URL}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "image_url", "IMAGE_URL": {"URL": URL}},
    ],
)
def test_a_local_server_is_not_made_to_fetch_either(part: dict[str, Any]) -> None:
    refused({"messages": _user(part)}, "openai_compatible")


@pytest.mark.parametrize(
    "options", [{"chat_template": "x"}, {"tools": []}, {"enable_thinking": {"chat_template": "x"}}, "x", ["x"]]
)
def test_a_template_among_options_is_refused_like_one_that_stands_alone(options: Any) -> None:
    refused({"chat_template_kwargs": options}, "openai_compatible")


def test_options_of_templates_pass_and_templates_do_where_they_are_allowed() -> None:
    passes({"chat_template_kwargs": {"enable_thinking": False}}, "openai_compatible")
    passes({"chat_template_kwargs": {"chat_template": "x"}}, "openai_compatible", features=["templates"])


def test_inline_files_pass() -> None:
    for text in ("eA==", "data:application/pdf;base64,eA=="):
        passes({"messages": _user({"type": "file", "file": {"file_data": text, "filename": "x: y.pdf"}})})
    passes({"messages": _user({"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}})})


def test_inline_images_pass() -> None:
    passes({"messages": _user({"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}})})


@pytest.mark.parametrize(
    "choice", [{"type": "web_search_preview"}, {"type": "mcp"}, {"type": "allowed_tools", "tools": [{"type": "mcp"}]}]
)
def test_a_choice_of_a_hosted_tool_is_refused(choice: dict[str, Any]) -> None:
    refused({"tool_choice": choice})


@pytest.mark.parametrize(
    "feature, body, provider",
    [
        ("web_search", {"tools": [{"type": "web_search_20250305", "name": "w"}]}, "anthropic"),
        ("mcp", {"mcp_servers": []}, "anthropic"),
        ("remote_content", {"messages": _user({"type": "image", "source": {"type": "url", "url": URL}})}, "anthropic"),
        ("files", {"messages": _user({"type": "document", "source": {"type": "file", "file_id": "f"}})}, "anthropic"),
        ("remote_content", {"messages": _user({"type": "image_url", "image_url": {"url": URL}})}, "openai"),
        ("priority", {"service_tier": "priority"}, "openai"),
    ],
)
def test_a_feature_the_operator_allows_passes_and_without_it_does_not(
    feature: str, body: dict[str, Any], provider: str
) -> None:
    """The positive control of the refusals above: what stops them is the list, not chance."""
    passes(body, provider, features=[feature])
    refused(body, provider)


def test_what_is_sent_is_what_was_judged_not_the_bytes_that_came() -> None:
    async def scene(agent: Agent) -> None:
        odd = b'{ "model" : "gpt\\u002d5", "messages":\n[], "temperature": 1.0 }'
        assert (await agent.post(odd)).status_code == 200
        assert agent.asked[0].body == b'{"model":"gpt-5","messages":[],"temperature":1.0}'

    play(scene)


def test_a_body_full_of_tiny_parts_does_not_become_a_huge_value() -> None:
    refused(b'{"model":"gpt-5","messages":[' + b"{}," * 400_000 + b"{}]}")


def test_the_key_is_in_no_text_of_ours() -> None:
    async def scene(agent: Agent) -> None:
        await agent.post()
        texts = [
            repr(agent.access),
            repr(agent.broker),
            repr(agent.session),
            repr(agent.session.exchanges),
            str(agent.session.environment(1)),
        ]
        assert isinstance(agent.broker, Broker)
        assert KEY not in "".join(texts)
        assert KEY in agent.asked[0].headers["authorization"]  # it did its work

    play(scene)


def test_json_of_the_refusal_does_not_repeat_more_than_a_piece_of_what_came() -> None:
    async def scene(agent: Agent) -> None:
        response = await agent.post(agent.body(model="x" * 10_000))
        assert len(response.content) < 1000
        assert len(json.dumps(agent.session.exchanges[0].as_json())) < 2000

    play(scene)


def test_a_type_that_is_very_long_is_judged_in_no_time() -> None:
    """Patterns with two stars take the square of its length; half a megabyte would be minutes."""
    part = {"type": "code_execution_" * 30_000 + "!"}
    began = time.process_time()
    refused({"messages": [{"role": "user", "content": [part]}]}, "anthropic")
    assert time.process_time() - began < 10
