"""From a tester file to the broker: which models a harness may use, with which keys, within which budget."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from securebench.egress.broker import Broker, BudgetLimits, ModelAccess
from securebench.egress.providers.loading import load_provider, load_provider_file, provider_names
from securebench.egress.providers.schema import Price, Provider
from securebench.errors import ConfigError
from securebench.harness_schema import (
    BudgetSection,
    ChatHarness,
    ClaudeCodeHarness,
    CodexHarness,
    CommandHarness,
    HarnessSection03,
    LimitsSection,
    ModelUse,
)
from securebench.harnesses.secrets import refuse_secrets
from securebench.tester_config import TesterConfig


@asynccontextmanager
async def open_broker(config: TesterConfig) -> AsyncIterator[Broker | None]:
    """The run's broker, or None where the harness uses no model. Raises ConfigError."""
    accesses = model_accesses(config)
    if not accesses:
        if config.budget != BudgetSection():
            raise ConfigError(
                f"budget limits what models use, and the harness {config.harness.type} is given none; remove budget, "
                "or declare the models under harness.config.models"
            )
        yield None
        return
    async with Broker(accesses, run=_limits(config.budget), attempt=_limits(config.budget.attempt)) as broker:
        yield broker


def model_accesses(config: TesterConfig) -> tuple[ModelAccess, ...]:
    """Every model the harness may use. Raises ConfigError for an unknown provider or a key that is not set."""
    return tuple(
        ModelAccess(
            provider=provider,
            model=model,
            base_url=use.base_url or "",
            key=_key(config, use, provider),
            models=frozenset(use.models),
            features=frozenset(use.features),
            prices={} if use.prices is None else {model: Price(**use.prices.model_dump())},
        )
        for use, provider, model in _uses(config)
    )


def key_names(config: TesterConfig) -> frozenset[str]:
    """The variables whose values go to the broker, and to nobody else."""
    return frozenset(use.api_key_env or provider.key.env for use, provider, _ in _uses(config))


def agent_environment(config: TesterConfig) -> dict[str, str]:
    """The variables that an agent is given. Raises ConfigError for what looks like a secret."""
    keys = key_names(config)
    env = {name: value for name, value in config.env.items() if name not in keys}
    known = [config.judge_key, *(config.environ.get(name) for name in keys)]
    refuse_secrets(env, [key for key in known if key])
    return env


def without_models(harness: HarnessSection03) -> HarnessSection03:
    """The same harness for a machine that asks models through another one: nothing of addresses, not even the names of
    keys."""
    match harness:
        case CommandHarness(config=command):
            return harness.model_copy(update={"config": command.model_copy(update={"models": ()})})
        case CodexHarness(config=agent) | ClaudeCodeHarness(config=agent):
            bare = {"base_url": None, "api_key_env": None}
            return harness.model_copy(update={"config": agent.model_copy(update=bare)})
    return harness


def _uses(config: TesterConfig) -> list[tuple[ModelUse, Provider, str]]:
    match config.harness:
        case CodexHarness(config=codex):
            return [(codex, _at(codex, "openai", config), codex.model)]
        case ClaudeCodeHarness(config=claude):
            return [(claude, _at(claude, "anthropic", config), claude.model)]
        case ChatHarness(config=chat):
            return [(chat, _at(chat, chat.provider, config), chat.model)]
        case CommandHarness(config=command):
            return [(use, _at(use, use.provider, config), use.model) for use in command.models]
    return []


def _at(use: ModelUse, name: str, config: TesterConfig) -> Provider:
    """A provider by name or file; at an address of one's own it needs neither TLS nor a key that nobody named."""
    own_file = name not in provider_names() and ("/" in name or name.endswith((".yaml", ".yml")))
    provider = load_provider_file(config.base / Path(name)) if own_file else load_provider(name)
    if use.base_url is None:
        return provider
    key = provider.key.model_copy(update={"required": False})
    return provider.model_copy(update={"key": key, "plain_http": True})


def _key(config: TesterConfig, use: ModelUse, provider: Provider) -> str | None:
    """A provider's key goes to another address only when the operator named it: addresses are easily mistyped."""
    name = use.api_key_env
    if name is None:
        given = use.base_url is None or provider.key.env in config.harness.env
        return config.environ.get(provider.key.env) if given else None
    if name not in config.environ:
        raise ConfigError(
            f"harness.config.api_key_env names {name}, which is not set; export it or put it into --env-file"
        )
    return config.environ[name]


def _limits(section: LimitsSection) -> BudgetLimits:
    return BudgetLimits(section.tokens, section.usd, section.requests, section.seconds)
