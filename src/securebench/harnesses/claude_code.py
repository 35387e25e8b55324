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
        story = _Story()
        for event in events(output):
            match event:
                case {"type": "assistant", "message": {"content": list(blocks)} as message}:
                    story.turn(message.get("id"), _metrics(message.get("usage")))
                    for block in blocks:
                        story.add(block)
                case {"type": "user", "message": {"content": list(blocks)}}:
                    story.close()
                    for block in blocks:
                        story.answer(block)
                case {"type": "system", "subtype": "api_retry", "error": str(error)}:
                    story.tell(f"asked the model again: {error}")
                case {"type": "result", "is_error": True, "result": str(text)}:
                    story.tell(text)
        story.close()
        return story.steps


class _Story:
    """Steps as they come. Every block is looked at once, however many there are of a message or of a call's name."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._id: Any = None
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[str, tuple[Step, int]] = {}  # the latest of each name

    def turn(self, number: Any, metrics: Metrics | None) -> None:
        """A message of the model begins, or goes on where it has the id of the one before."""
        if self._id is None or number != self._id:
            self.close()
            self.steps.append(Step("agent", "", metrics=metrics))
        self._id = number

    def add(self, block: Any) -> None:
        match block:
            case {"type": "text", "text": str(text)}:
                self._texts.append(text)
            case {"type": "thinking", "thinking": str(text)}:
                self._thoughts.append(text)
            case {"type": "tool_use", "id": str(number), "name": str(name), "input": dict(arguments)}:
                calls = self.steps[-1].tool_calls
                self._calls[number] = (self.steps[-1], len(calls))
                calls.append(ToolCall(number, name, arguments))

    def answer(self, block: Any) -> None:
        """Put a tool's result beside its call."""
        match block:
            case {"type": "tool_result", "tool_use_id": str(number), "content": content} if number in self._calls:
                step, at = self._calls[number]
                step.tool_calls[at] = replace(step.tool_calls[at], result=text_of(content))

    def tell(self, text: str) -> None:
        self.close()
        self.steps.append(Step("system", text))

    def close(self) -> None:
        """The message that was under way is complete."""
        if self._texts:
            self.steps[-1].message = "\n".join(self._texts)
        if self._thoughts:
            self.steps[-1].reasoning = "\n".join(self._thoughts)
        self._id, self._texts, self._thoughts = None, [], []


def _metrics(usage: Any) -> Metrics | None:
    if not isinstance(usage, dict):
        return None
    fresh, written = whole(usage.get("input_tokens")), whole(usage.get("cache_creation_input_tokens"))
    cached = whole(usage.get("cache_read_input_tokens"))
    prompt = None if fresh is None else fresh + (written or 0) + (cached or 0)
    return Metrics(prompt, whole(usage.get("output_tokens")), cached)
