"""The Claude Code CLI: how it is started, and what its event stream says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from securebench.harnesses.cli_agent import HOME, CliAgent
from securebench.harnesses.event_lines import events, text_of, whole
from securebench.harnesses.trajectory import Metrics, Step, ToolCall


class ClaudeCodeAgent(CliAgent):
    """Sandboxing is ours, so it need not ask for permissions; tools that need the open network are taken from it."""

    name = "claude_code"
    provider = "anthropic"

    def arguments(self, models: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002 — it reads the environment
        return (
            "-p", "--model", self.model, "--output-format", "stream-json", "--verbose",
            "--dangerously-skip-permissions", "--disallowedTools", "WebFetch,WebSearch",
        )  # fmt: skip

    def environment(self) -> Mapping[str, str]:
        switches = (
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING", "DISABLE_BUG_COMMAND", "IS_SANDBOX",
        )  # fmt: skip
        # The broker asks again on its own.
        return {"CLAUDE_CONFIG_DIR": f"{HOME}/.claude", "CLAUDE_CODE_MAX_RETRIES": "2", **dict.fromkeys(switches, "1")}

    def steps(self, output: bytes) -> Sequence[Step]:
        found: list[Step] = []
        last_id = None
        for event in events(output):
            match event:
                case {"type": "assistant", "message": {"content": list(blocks)} as message}:
                    if not found or last_id is None or message.get("id") != last_id:
                        found.append(Step("agent", "", metrics=_metrics(message.get("usage"))))
                    last_id = message.get("id")
                    for block in blocks:
                        _add(found[-1], block)
                case {"type": "user", "message": {"content": list(blocks)}}:
                    last_id = None
                    for block in blocks:
                        _answer(found, block)
                case {"type": "system", "subtype": "api_retry", "error": str(error)}:
                    found.append(Step("system", f"asked the model again: {error}"))
                    last_id = None
                case {"type": "result", "is_error": True, "result": str(text)}:
                    found.append(Step("system", text))
        return found


def _add(step: Step, block: Any) -> None:
    match block:
        case {"type": "text", "text": str(text)}:
            step.message = f"{step.message}\n{text}" if step.message else text
        case {"type": "thinking", "thinking": str(text)}:
            step.reasoning = f"{step.reasoning}\n{text}" if step.reasoning else text
        case {"type": "tool_use", "id": str(number), "name": str(name), "input": dict(arguments)}:
            step.tool_calls.append(ToolCall(number, name, arguments))


def _answer(steps: list[Step], block: Any) -> None:
    """Put a tool's result beside its call, among the latest few."""
    match block:
        case {"type": "tool_result", "tool_use_id": str(number), "content": content}:
            for step in steps[:-50:-1]:
                for at, call in enumerate(step.tool_calls):
                    if call.id == number:
                        step.tool_calls[at] = replace(call, result=text_of(content))
                        return


def _metrics(usage: Any) -> Metrics | None:
    if not isinstance(usage, dict):
        return None
    fresh, written = whole(usage.get("input_tokens")), whole(usage.get("cache_creation_input_tokens"))
    cached = whole(usage.get("cache_read_input_tokens"))
    prompt = None if fresh is None else fresh + (written or 0) + (cached or 0)
    return Metrics(prompt, whole(usage.get("output_tokens")), cached)
