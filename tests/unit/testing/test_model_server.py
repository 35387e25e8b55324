"""The scripted model: real requests over loopback, as clients of the providers make them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from securebench.testing.model_server import (
    KEY,
    Asked,
    Fault,
    ModelServer,
    Scene,
    ToolCall,
    Turn,
    mentions,
    model_server,
    run_command,
    serve_model,
)

BASH = {"name": "Bash", "input_schema": {"type": "object"}}
EXEC = {"type": "function", "name": "exec_command", "parameters": {}}
CHAT_BASH = {"type": "function", "function": {"name": "bash", "parameters": {}}}


def post(server: ModelServer, path: str, body: Any, key: str | None = KEY) -> httpx2.Response:
    headers = {} if key is None else {"x-api-key": key} if "messages" in path else {"Authorization": f"Bearer {key}"}
    return httpx2.post(server.url + path, json=body, headers=headers, trust_env=False, timeout=60)


def events(response: httpx2.Response) -> list[dict[str, Any]]:
    """Every event of a stream; its name must be its type where it has one."""
    found = []
    for block in response.text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        if fields["data"] == "[DONE]":
            continue
        data = json.loads(fields["data"])
        assert fields.get("event") == data.get("type")
        found.append(data)
    return found


def user(text: str = "hello") -> dict[str, str]:
    return {"role": "user", "content": text}


TWO = [Turn("Working.", [run_command("ls")], usage=(100, 60, 9)), Turn("Done.")]


def test_chat_completions_whole() -> None:
    with model_server(TWO) as server:
        body = {"model": "m", "messages": [user()], "tools": [CHAT_BASH]}
        first = post(server, "/v1/chat/completions", body).json()
        (call,) = first["choices"][0]["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("bash", {"command": "ls"})
        assert first["choices"][0]["finish_reason"] == "tool_calls"
        assert first["usage"]["prompt_tokens"] == 100
        assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 60}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "a.txt"}
        body["messages"] += [first["choices"][0]["message"], result]
        second = post(server, "/v1/chat/completions", body).json()
        assert second["choices"][0]["message"]["content"] == "Done."


@pytest.mark.parametrize("with_usage", [True, False])
def test_chat_completions_streamed(with_usage: bool) -> None:
    with model_server(TWO) as server:
        body = {"model": "m", "messages": [user()], "tools": [CHAT_BASH], "stream": True}
        body |= {"stream_options": {"include_usage": True}} if with_usage else {}
        response = post(server, "/v1/chat/completions", body)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.text.endswith("data: [DONE]\n\n")
        deltas = [chunk["choices"][0]["delta"] for chunk in events(response) if chunk["choices"]]
        assert "".join(delta.get("content", "") for delta in deltas) == "Working."
        calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
        assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"command": "ls"}
        usages = [chunk["usage"] for chunk in events(response) if chunk.get("usage")]
        assert [usage["completion_tokens"] for usage in usages] == ([9] if with_usage else [])


def test_responses_whole_and_streamed_agree() -> None:
    with model_server(TWO) as server:
        body = {"model": "m", "input": [user()], "tools": [EXEC]}
        whole = post(server, "/v1/responses", body).json()
        said = events(post(server, "/v1/responses", body | {"stream": True}))
        kinds = [event["type"] for event in said]
        assert kinds[0] == "response.created"
        assert kinds.count("response.output_item.done") == 2
        assert said[-1] == said[-1] | {"type": "response.completed", "response": whole}
        deltas = [event["delta"] for event in said if event["type"] == "response.output_text.delta"]
        assert "".join(deltas) == "Working."
        assert len(deltas) > 1
        message, call = whole["output"]
        assert message["content"][0]["text"] == "Working."
        assert (call["name"], json.loads(call["arguments"])) == ("exec_command", {"cmd": "ls"})
        assert whole["usage"]["input_tokens_details"] == {"cached_tokens": 60}
        assert [event["sequence_number"] for event in said] == list(range(len(said)))


def test_messages_whole_and_streamed_agree() -> None:
    with model_server(TWO) as server:
        body = {"model": "m", "max_tokens": 9, "messages": [user()], "tools": [BASH]}
        whole = post(server, "/v1/messages?beta=true", body).json()
        assert whole["stop_reason"] == "tool_use"
        assert whole["content"][1]["input"]["command"] == "ls"
        assert whole["usage"]["input_tokens"] == 40
        assert whole["usage"]["cache_read_input_tokens"] == 60
        said = events(post(server, "/v1/messages", body | {"stream": True}))
        kinds = [event["type"] for event in said]
        assert (kinds[0], kinds[-2], kinds[-1]) == ("message_start", "message_delta", "message_stop")
        deltas = [event["delta"] for event in said if event["type"] == "content_block_delta"]
        assert "".join(delta.get("text", "") for delta in deltas) == "Working."
        assert json.loads("".join(delta.get("partial_json", "") for delta in deltas))["command"] == "ls"
        assert said[-2]["usage"] == {"output_tokens": 9}
        assert said[0]["message"]["usage"]["cache_read_input_tokens"] == 60


def test_messages_go_on_where_the_conversation_is() -> None:
    with model_server(TWO) as server:
        call = {"type": "tool_use", "id": "toolu_turn0_0", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "toolu_turn0_0", "content": "a.txt"}
        messages = [user(), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        for _ in range(2):  # a retry gets the same turn
            said = post(server, "/v1/messages", {"model": "m", "messages": messages, "tools": [BASH]}).json()
            assert said["content"] == [{"type": "text", "text": "Done."}]


@pytest.mark.parametrize("interleaved", [True, False])
def test_two_calls_of_one_turn_count_once_in_any_order(interleaved: bool) -> None:
    with model_server([Turn("", [run_command("a"), run_command("b")]), Turn("Done.")]) as server:
        body = {"model": "m", "input": [user()], "tools": [EXEC]}
        calls = post(server, "/v1/responses", body).json()["output"]
        results = [{"type": "function_call_output", "call_id": call["call_id"], "output": ""} for call in calls]
        pairs = [part for pair in zip(calls, results, strict=True) for part in pair]
        body["input"] += pairs if interleaved else calls + results
        assert post(server, "/v1/responses", body).json()["output"][0]["content"][0]["text"] == "Done."
        assert [asked.turn for asked in server.asked] == [0, 1]


def test_custom_tools_are_called_with_text() -> None:
    with model_server([Turn("", [ToolCall("apply_patch", {"input": "*** Begin"})])]) as server:
        tools = [{"type": "custom", "name": "apply_patch"}]
        said = post(server, "/v1/responses", {"model": "m", "input": [user()], "tools": tools}).json()
        assert said["output"][0]["type"] == "custom_tool_call"
        assert said["output"][0]["input"] == "*** Begin"


@pytest.mark.parametrize("key", ["sk-placeholder", None, KEY[:-1]])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_only_the_key_is_let_in(path: str, key: str | None) -> None:
    with model_server([Turn("hi")]) as server:
        assert post(server, path, {"model": "m", "messages": [user()]}, key).status_code == 401
        assert server.asked == []
        assert post(server, path, {"model": "m", "messages": [user()]}).status_code == 200


def test_a_local_server_asks_for_no_key() -> None:
    with model_server([Turn("hi")], key=None) as server:
        assert post(server, "/v1/responses", {"model": "m", "input": []}, None).status_code == 200


def test_models_and_count_tokens() -> None:
    with model_server([], models=["a", "b"]) as server:
        listed = httpx2.get(server.base_url + "/models", headers={"x-api-key": KEY}, trust_env=False, timeout=60).json()
        assert [model["id"] for model in listed["data"]] == ["a", "b"]
        counted = post(server, "/v1/messages/count_tokens", {"model": "m", "messages": [user("x" * 400)]}).json()
        assert counted["input_tokens"] >= 100
        assert post(server, "/v1/files", {}).status_code == 404
        assert httpx2.head(server.url, headers={"x-api-key": KEY}, trust_env=False, timeout=60).status_code == 404


def test_every_request_is_recorded() -> None:
    with model_server([Turn("hi")]) as server:
        post(server, "/v1/messages?beta=true", {"model": "m", "messages": [user()]})
        (request,) = server.requests
        assert (request.method, request.path, request.target) == ("POST", "/v1/messages", "/v1/messages?beta=true")
        assert request.headers["x-api-key"] == KEY
        assert request.json["messages"] == [user()]


def test_scenes_and_functions_choose_by_what_is_asked() -> None:
    def count(asked: Asked) -> Turn:
        return Turn(f"turn {asked.turn}")

    with model_server(count, scenes=[Scene(mentions("paint"), [Turn("green")])]) as server:

        def said(*messages: dict[str, str]) -> str:
            body = {"model": "m", "messages": list(messages)}
            return str(post(server, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"])

        assert said(user("paint it")) == "green"
        assert said(user("go"), {"role": "assistant", "content": "ok"}, user("on")) == "turn 1"
        assert said(user("paint"), {"role": "assistant", "content": "green"}, user("go")) == "The script is over."


def test_requests_without_tools_get_no_tool_calls() -> None:
    with model_server(TWO) as server:
        said = post(server, "/v1/messages", {"model": "m", "messages": [user("Name this session")]}).json()
        assert [block["type"] for block in said["content"]] == ["text"]


def test_faults_come_before_the_turn() -> None:
    faults = [
        Fault(status=429, retry_after="1"),
        Fault(status=500, echo=True),
        Fault(drop=True),
        Fault(cut_after=20),
    ]
    with model_server([Turn("at last", faults=faults)]) as server:
        body = {"model": "m", "messages": [user()]}
        limited = post(server, "/v1/chat/completions", body)
        assert (limited.status_code, limited.headers["retry-after"]) == (429, "1")
        echoed = post(server, "/v1/chat/completions", body)
        assert echoed.status_code == 500
        assert KEY in echoed.text
        for _ in range(2):
            with pytest.raises(httpx2.RemoteProtocolError):
                post(server, "/v1/chat/completions", body)
        assert post(server, "/v1/chat/completions", body).json()["choices"][0]["message"]["content"] == "at last"
        other = {"model": "m", "messages": [user("other")]}
        assert post(server, "/v1/chat/completions", other).status_code == 429


def test_a_cut_stream_ends_amid_its_events() -> None:
    with model_server([Turn("some words", faults=[Fault(cut_after=2)])]) as server:
        with pytest.raises(httpx2.RemoteProtocolError):
            post(server, "/v1/responses", {"model": "m", "input": [user()], "stream": True})
        assert post(server, "/v1/responses", {"model": "m", "input": [user()], "stream": True}).status_code == 200


def test_raw_bytes_and_other_statuses_are_sent_as_they_are() -> None:
    turns = {"raw": Turn(raw=b"\xff{", content_type="text/plain"), "404": Turn("no such model", status=404)}
    with model_server(lambda asked: turns[asked.model]) as server:
        raw = post(server, "/v1/chat/completions", {"model": "raw", "messages": []})
        assert (raw.content, raw.headers["content-type"]) == (b"\xff{", "text/plain")
        missing = post(server, "/v1/chat/completions", {"model": "404", "messages": []})
        assert missing.status_code == 404
        assert missing.json()["error"]["message"] == "no such model"


@pytest.mark.parametrize(
    ("finish", "chat", "messages", "status"),
    [
        ("length", "length", "max_tokens", "incomplete"),
        ("refusal", "stop", "refusal", "completed"),
        ("content_filter", "content_filter", "refusal", "completed"),
        (None, "stop", "end_turn", "completed"),
    ],
)
def test_ways_to_finish(finish: str | None, chat: str, messages: str, status: str) -> None:
    with model_server([Turn("words", finish=finish)]) as server:
        choice = post(server, "/v1/chat/completions", {"model": "m", "messages": []}).json()["choices"][0]
        assert choice["finish_reason"] == chat
        assert (choice["message"]["refusal"] == "words") is (finish == "refusal")
        assert post(server, "/v1/messages", {"model": "m", "messages": []}).json()["stop_reason"] == messages
        assert post(server, "/v1/responses", {"model": "m", "input": []}).json()["status"] == status


def test_usage_can_be_left_out() -> None:
    with model_server([Turn("words", usage=None)]) as server:
        for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses"):
            assert not post(server, path, {"model": "m"}).json().get("usage")


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"a":1,"a":2}'])
def test_bodies_that_are_no_object_are_refused(body: bytes) -> None:
    with model_server([Turn("hi")]) as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        url = server.base_url + "/chat/completions"
        sent = httpx2.post(url, content=body, headers=headers, trust_env=False, timeout=60)
        assert sent.status_code == 400


def test_a_slow_conversation_does_not_hold_up_another() -> None:
    def turn(asked: Asked) -> Turn:
        return Turn("slow", delay=600) if "slow" in asked.text else Turn("quick")

    async def main() -> None:
        async with serve_model(turn) as server, httpx2.AsyncClient(trust_env=False, timeout=60) as client:

            async def ask(text: str) -> httpx2.Response:
                headers = {"Authorization": f"Bearer {KEY}"}
                body = {"model": "m", "messages": [user(text)]}
                return await client.post(server.base_url + "/chat/completions", json=body, headers=headers)

            with anyio.fail_after(50):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(ask, "slow")
                    await anyio.sleep(0.05)
                    assert (await ask("go")).json()["choices"][0]["message"]["content"] == "quick"
                    tasks.cancel_scope.cancel()

    anyio.run(main)


def test_an_odd_client_harms_nobody() -> None:
    async def main() -> None:
        async with serve_model([Turn("hi")]) as server:
            port = int(server.url.rpartition(":")[2])
            for data in (
                b"\0\0\0\r\n\r\n",
                b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
                b"",
            ):
                async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                    await stream.send(data)
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
                sent = await client.get(server.base_url + "/models", headers={"x-api-key": KEY})
                assert sent.status_code == 200

    anyio.run(main)


def test_as_a_process_it_says_where_it_is_and_ends_with_its_stdin(tmp_path: Path) -> None:
    script, record = tmp_path / "script.json", tmp_path / "requests.jsonl"
    turns = [{"text": "T", "run": ["ls"], "usage": [7, 1, 2]}, {"raw": "odd"}]
    scenes = [{"mentions": "paint", "turns": [{"text": "green", "faults": [{"status": 503}]}]}]
    script.write_text(json.dumps({"scenes": scenes, "turns": turns}))
    command = [sys.executable, "-m", "securebench.testing.model_server", str(script), "--record", str(record)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        headers = {"Authorization": f"Bearer {where['key']}"}

        def ask(text: str) -> httpx2.Response:
            body = {"model": where["model"], "messages": [user(text)], "tools": [CHAT_BASH]}
            url = where["base_url"] + "/chat/completions"
            return httpx2.post(url, json=body, headers=headers, trust_env=False, timeout=60)

        assert [ask("paint").status_code, ask("paint").status_code] == [503, 200]
        assert ask("go").json()["usage"]["total_tokens"] == 9
        process.communicate(timeout=60)
        assert process.returncode == 0
    recorded = [json.loads(line) for line in record.read_text().splitlines()]
    assert [entry["target"] for entry in recorded] == ["/v1/chat/completions"] * 3


def test_what_fails_in_the_block_is_seen_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), model_server([]):
        _ = 1 / 0
