"""Which models an access permits, what they cost, and what cannot be configured."""

from __future__ import annotations

import pytest

from securebench.egress.broker import Broker, BudgetLimits, ModelAccess
from securebench.egress.providers import load_provider
from securebench.egress.providers.schema import Price
from securebench.errors import ConfigError

KEY = "sk-real-0123456789abcdefghijklmnop"


def access(provider: str = "anthropic", model: str = "sonnet", **more: object) -> ModelAccess:
    return ModelAccess(load_provider(provider), model, **({"key": KEY} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "model, models, asked, permitted",
    [
        ("claude-sonnet-4-5", (), "claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", (), "claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-5", (), "claude-sonnet-4-5-latest", True),
        ("claude-sonnet-4-5", (), "claude-sonnet-4-5-2025092", False),
        ("claude-sonnet-4-5", (), "claude-sonnet-4-5-20250929-x", False),
        ("claude-sonnet-4", (), "claude-sonnet-4-5", False),
        ("sonnet", (), "claude-sonnet-4-5-20250929", True),
        ("sonnet", (), "sonnet", True),
        ("sonnet", (), "claude-opus-4-5", False),
        ("sonnet", (), "claude-haiku-4-5", False),
        ("sonnet", ("haiku",), "claude-haiku-4-5-20251001", True),
        ("sonnet", ("claude-3-5-haiku-*",), "claude-3-5-haiku-20241022", True),
        ("sonnet", ("claude-3-5-haiku-*",), "claude-3-5-haiku-", False),
        ("sonnet", (), "", False),
        ("claude-sonnet-4-5-20250929", (), "claude-sonnet-4-5", False),
    ],
)
def test_a_model_is_permitted_by_name_date_or_family(
    model: str, models: tuple[str, ...], asked: str, permitted: bool
) -> None:
    assert access(model=model, models=frozenset(models)).permits(asked) is permitted


def test_prices_of_the_operator_go_before_those_of_the_file_and_dates_do_not_matter() -> None:
    ours = access(model="claude-sonnet-4-5")
    assert ours.price("claude-sonnet-4-5-20250929") == load_provider("anthropic").prices["claude-sonnet-4-5"]
    assert ours.price("claude-sonnet-9") is None
    stated = access(model="claude-sonnet-4-5", prices={"claude-sonnet-4-5": Price(input=1.0, output=2.0)})
    found = stated.price("claude-sonnet-4-5-20250929")
    assert found is not None
    assert found.input == 1.0
    family = access(prices={"sonnet": Price(input=4.0, output=2.0)})
    assert [price and price.input for price in map(family.price, ("claude-sonnet-9", "claude-opus-9"))] == [4.0, None]


def test_a_budget_of_money_needs_prices_and_says_how_to_state_them() -> None:
    unknown = access("openai_compatible", "llama3", base_url="http://10.0.0.5:8000/v1", key=None)
    for limits in ({"run": BudgetLimits(usd=1)}, {"attempt": BudgetLimits(usd=1)}):
        with pytest.raises(ConfigError, match=r"prices: \{llama3: \{input: "):
            Broker([unknown], **limits)
    Broker([unknown], run=BudgetLimits(tokens=1))
    stated = access(
        "openai_compatible", "llama3", base_url="http://x/v1", prices={"llama3": Price(input=0.0, output=0.0)}
    )
    Broker([stated], run=BudgetLimits(usd=1))


@pytest.mark.parametrize(
    "url",
    [
        "http://api.anthropic.com",
        "ftp://x",
        "https://",
        "https://u:p@x",
        "https://x/?a=b",
        "https://x/#f",
        "x",
        "https://x:0",
        "https://x/a//b",
        "https://x/../y",
        "https://x/%2e",
        "https://x:99999",
        "https://x/a b",
        "file:///etc/passwd",
    ],
)
def test_a_base_url_that_is_not_plain_and_safe_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        access(base_url=url)


@pytest.mark.parametrize(
    "url", ["https://proxy.example/api/", "http://127.0.0.1:8080", "http://localhost:1/v1", "http://[::1]:1"]
)
def test_a_base_url_may_be_another_one(url: str) -> None:
    assert access(base_url=url).base_url == url.rstrip("/")


def test_local_servers_need_an_address_and_no_key() -> None:
    with pytest.raises(ConfigError, match="needs a base_url"):
        access("openai_compatible", "m", key=None)
    access("openai_compatible", "Qwen/Qwen2.5-Coder", base_url="http://gpu-1:8000/v1", key=None)
    with pytest.raises(ConfigError, match="export ANTHROPIC_API_KEY"):
        access(key=None)


@pytest.mark.parametrize("key", ["", "a b", "line\nbreak", "ü" * 20, "x\r\nhost: y"])
def test_a_key_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        access(key=key)
    assert not key or key not in str(caught.value)


def test_the_key_is_in_no_representation() -> None:
    assert KEY not in repr(access())
    assert KEY not in repr(Broker([access()]))
    with pytest.raises(ConfigError) as caught:
        access(features=frozenset({"nonsense"}))
    assert KEY not in str(caught.value)
    assert "web_search" in str(caught.value)


@pytest.mark.parametrize("model", ["", "*", "a b", "x" * 201])
def test_what_is_no_name_of_a_model_is_refused(model: str) -> None:
    with pytest.raises(ConfigError):
        access(model=model)


def test_two_providers_with_the_same_variables_are_refused() -> None:
    one, other = access("openai", "gpt-5"), access("openai_compatible", "m", base_url="http://x/v1")
    with pytest.raises(ConfigError, match="variables"):
        Broker([one, other])
    Broker([one, access()])


@pytest.mark.parametrize(
    "limits", [{"tokens": 0}, {"usd": -1.0}, {"requests": 0}, {"seconds": float("inf")}, {"usd": float("nan")}]
)
def test_a_budget_of_nothing_is_refused(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="greater than zero"):
        BudgetLimits(**limits)  # type: ignore[arg-type]
