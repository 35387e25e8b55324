"""The OpenAI Codex CLI: how it is started, and what its event stream says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from securebench.harnesses.cli_agent import HOME, CliAgent
from securebench.harnesses.event_lines import events, text_of
from securebench.harnesses.trajectory import Step, ToolCall

_PROVIDER = "securebench"
_RESULTS = {
    "command_execution": ("command", "aggregated_output"),
    "file_change": ("changes", "status"),
    "mcp_tool_call": ("arguments", "result"),
    "web_search": ("query", "status"),
    "todo_list": ("items", "status"),
}


class CodexAgent(CliAgent):
    """Sandboxing is ours, so its own is off; hosted tools are the broker's to refuse, so it does not offer them."""

    name = "codex"
    provider = "openai"

    def arguments(self, models: Mapping[str, str]) -> tuple[str, ...]:
        address = models["OPENAI_BASE_URL"]
        provider = f'{{name="{_PROVIDER}",base_url="{address}",env_key="OPENAI_API_KEY",wire_api="responses"}}'
        settings = (
            f"model_provider={_PROVIDER}",
            f"model_providers.{_PROVIDER}={provider}",
            'web_search="disabled"',
            *(f"features.{name}=false" for name in ("multi_agent", "goals", "apps", "plugins", "tool_search")),
            "analytics.enabled=false",
            "check_for_update_on_startup=false",
        )
        return (
            "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", self.model,
            *(word for setting in settings for word in ("-c", setting)), "-",
        )  # fmt: skip

    def environment(self) -> Mapping[str, str]:
        return {"CODEX_HOME": HOME}

    def steps(self, output: bytes) -> Sequence[Step]:
        found: list[Step] = []
        reasoning: list[str] = []
        for event in events(output):
            match event:
                case {"type": "item.completed", "item": {"type": "agent_message", "text": str(text)}}:
                    found.append(Step("agent", text, "\n".join(reasoning) or None))
                    reasoning = []
                case {"type": "item.completed", "item": {"type": "reasoning", "text": str(text)}}:
                    reasoning.append(text)
                case {"type": "item.completed", "item": {"id": str(), "type": str(kind)} as item} if kind in _RESULTS:
                    if not found or found[-1].source != "agent" or reasoning:
                        found.append(Step("agent", "", "\n".join(reasoning) or None))
                        reasoning = []
                    found[-1].tool_calls.append(_call(item, kind))
                case {"type": "error", "message": str(text)} | {"type": "turn.failed", "error": {"message": str(text)}}:
                    found.append(Step("system", text))
        return found


def _call(item: Mapping[str, Any], kind: str) -> ToolCall:
    asked, answered = _RESULTS[kind]
    result = text_of(item.get(answered))
    if isinstance(code := item.get("exit_code"), int):
        result = f"{result}\n[exit code {code}]" if code else result
    return ToolCall(item["id"], str(item.get("tool", kind)), {asked: item.get(asked)}, result)
