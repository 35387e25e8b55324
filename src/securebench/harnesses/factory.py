"""`build_harness_producer`: the one place that knows which harness type is which class."""

from __future__ import annotations

from securebench.errors import ConfigError
from securebench.harness_schema import ChatHarness, CommandHarness, ConstantHarness, ControlHarness
from securebench.harnesses.base import HarnessProducer
from securebench.harnesses.command import CommandHarnessProducer
from securebench.harnesses.controls import ControlProducer
from securebench.sandboxes.base import Sandbox
from securebench.tester_config import TesterConfig


def needs_sandbox(config: TesterConfig) -> bool:
    """Whether the harness runs anything that is not ours."""
    return not isinstance(config.harness, ControlHarness | ConstantHarness | ChatHarness)


def build_harness_producer(config: TesterConfig, sandbox: Sandbox | None) -> HarnessProducer:
    """The producer a tester file asks for. Raises ConfigError when it cannot be built."""
    missing = [name for name in config.harness.env if name not in config.env]
    if missing:
        raise ConfigError(
            f"harness.env names {', '.join(missing)}, which is not set; export it or put it into --env-file"
        )
    match config.harness:
        case CommandHarness(config=settings) if sandbox is not None:
            return CommandHarnessProducer(settings, config.env, sandbox, config.sandbox)
        case ControlHarness(type=kind):
            return ControlProducer(kind, sandbox=sandbox)
        case ConstantHarness(config=constant):
            return ControlProducer("constant", constant.response, sandbox)
    raise ConfigError(f"harness type {config.harness.type!r} is not available in this version")
