"""`build_harness_producer`: the one place that knows which harness type is which class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from securebench.egress.broker import Broker
from securebench.egress.rules import EgressLimits
from securebench.errors import ConfigError
from securebench.harness_schema import (
    ChatHarness,
    ClaudeCodeHarness,
    CodexHarness,
    CommandHarness,
    ConstantHarness,
    ControlHarness,
    SamplesHarness,
)
from securebench.harnesses.agent import Agent
from securebench.harnesses.base import HarnessProducer
from securebench.harnesses.chat import ChatHarnessProducer
from securebench.harnesses.claude_code import ClaudeCodeAgent
from securebench.harnesses.codex import CodexAgent
from securebench.harnesses.command import CommandAgent
from securebench.harnesses.controls import ControlProducer
from securebench.harnesses.doors import ModelDoors
from securebench.harnesses.models import agent_environment
from securebench.harnesses.outlets import Outlets
from securebench.harnesses.overlays import Overlay
from securebench.harnesses.prompts import Prompt
from securebench.harnesses.samples import SamplesProducer
from securebench.harnesses.sandboxed import SandboxedProducer
from securebench.harnesses.tool_check import fit_tool
from securebench.harnesses.tools.description import load_tool
from securebench.sandboxes.base import Command, ImageRoot, Root, Sandbox, SandboxSpec, run_once
from securebench.tester_config import TesterConfig

Overlays = Mapping[Root, Overlay]
_MISSING = 3
_FIND = f'command -v -- "$1" >/dev/null || exit {_MISSING}'


def needs_sandbox(config: TesterConfig) -> bool:
    """Whether the harness runs anything that is not ours."""
    return not isinstance(config.harness, ControlHarness | ConstantHarness | ChatHarness | SamplesHarness)


async def prepare_overlays(
    config: TesterConfig, sandbox: Sandbox | None, roots: Iterable[Root], on_progress: Callable[[str], None]
) -> Overlays:
    """The build of the harness's tool for each root file system, seen to start there; empty for harnesses without one.

    Raises SandboxUnavailable, InfrastructureError, ConfigError, IntegrityError."""
    match config.harness:
        case CodexHarness(config=settings) | ClaudeCodeHarness(config=settings) if sandbox is not None:
            tool, version = load_tool(config.harness.type), settings.version
            fitted: dict[Root, Overlay] = {}
            for root in roots:
                fitted[root], _ = await fit_tool(sandbox, root, tool, version, on_progress)
                version = fitted[root].version  # a tag must not mean two versions in one run
            return fitted
    return {}


async def check_program(config: TesterConfig, sandbox: Sandbox, roots: Iterable[Root]) -> None:
    """A command whose program is not there would fail every task, and not by the agent's fault. Raises ConfigError.

    Programs named by a path within the working directory are the tasks' own, and not looked for."""
    if not isinstance(config.harness, CommandHarness):
        return
    command = config.harness.config.command
    program = "sh" if isinstance(command, str) else command[0]
    if "/" in program and not program.startswith("/"):
        return
    for root in roots:
        result = await run_once(sandbox, SandboxSpec(root=root), Command(("sh", "-c", _FIND, "sh", program)))
        if result.exit_code == _MISSING or (program == "sh" and not result.ok):
            where = f"image {root.reference}" if isinstance(root, ImageRoot) else "the sandbox"
            raise ConfigError(
                f"harness.config.command cannot be started: {where} has no {program!r}; a string needs sh, a list its "
                "first word as a program that the sandbox has"
            )


def build_harness_producer(
    config: TesterConfig,
    sandbox: Sandbox | None,
    broker: ModelDoors | None = None,
    overlays: Overlays | None = None,
    samples: str | None = None,
) -> HarnessProducer:
    """The producer a tester file asks for; `samples` is the digest of the file it names, if it names one. Raises
    ConfigError when it cannot be built."""
    _require_environment(config)
    match config.harness:
        case ControlHarness(type="reference"):
            raise ConfigError(
                "the reference agent knows the answers, so it is never run for a score; "
                "`securebench validate PACK` runs it on every row"
            )
        case ControlHarness(type=kind):
            return ControlProducer(kind, sandbox=sandbox)
        case ConstantHarness(config=constant):
            return ControlProducer("constant", constant.response, sandbox)
        case SamplesHarness():
            return SamplesProducer(samples)
        case ChatHarness(config=chat) if isinstance(broker, Broker):
            return ChatHarnessProducer(chat, broker, Prompt.load("chat", config.prompt, chat.prompt or ""))
    if sandbox is None:
        raise ConfigError(f"harness {config.harness.type} needs a sandbox")
    agent, domains = _agent(config, overlays or {})
    outlets = _outlets(config, broker, domains)
    return SandboxedProducer(agent, agent_environment(config), sandbox, config.sandbox, outlets)


def check_environment(config: TesterConfig) -> None:
    """Whether an agent can be given its variables, for whoever has it produce elsewhere. Raises ConfigError."""
    _require_environment(config)
    agent_environment(config)


def _require_environment(config: TesterConfig) -> None:
    missing = [name for name in config.harness.env if name not in config.env]
    if missing:
        raise ConfigError(
            f"harness.env names {', '.join(missing)}, which is not set; export it or put it into --env-file"
        )


def _outlets(config: TesterConfig, broker: ModelDoors | None, domains: tuple[str, ...]) -> Outlets:
    egress = config.egress
    limits = EgressLimits(
        connections=egress.connections,
        bytes=int(egress.bytes),
        seconds=egress.seconds,
        idle_seconds=egress.idle_seconds,
    )
    return Outlets(broker, frozenset(domains), frozenset(egress.private_domains), limits)


def _agent(config: TesterConfig, overlays: Overlays) -> tuple[Agent, tuple[str, ...]]:
    match config.harness:
        case CommandHarness(config=command):
            return CommandAgent(command), command.allowed_domains
        case CodexHarness(config=codex):
            return CodexAgent(
                codex, overlays, Prompt.load("agent", config.prompt, codex.prompt or "")
            ), codex.allowed_domains
        case ClaudeCodeHarness(config=claude):
            return ClaudeCodeAgent(
                claude, overlays, Prompt.load("agent", config.prompt, claude.prompt or "")
            ), claude.allowed_domains
    raise ConfigError(f"harness type {config.harness.type!r} cannot be built")
