"""One model at one provider, with the key: what the operator lets agents use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType
from urllib.parse import urlsplit

from securebench.egress.providers.schema import Price, Provider
from securebench.errors import ConfigError

_DATED = re.compile(r"-(?:[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2}|latest)")
_KEY = re.compile(r"[\x21-\x7e]{1,4096}")
_MODEL = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """A provider, the model that may be asked for there, and the real key, which is shown nowhere.

    `models` are further names an agent may ask for: full names, names the provider file gives to a family of models
    (`haiku`), or texts that end in `*`. `prices` go before those of the provider file.
    Raises ConfigError for what cannot work; no message repeats the key."""

    provider: Provider
    model: str
    base_url: str = ""
    key: str | None = field(default=None, repr=False)
    models: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    prices: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        name = self.provider.name
        base_url = (self.base_url or self.provider.base_url or "").rstrip("/")
        object.__setattr__(self, "base_url", base_url)
        _check_url(base_url, self.provider)
        for model in (self.model, *self.models):
            if not _MODEL.fullmatch(model) or model == "*":
                raise ConfigError(f"provider {name}: {model[:80]!r} is not the name of a model")
        if self.key is None and self.provider.key.required:
            raise ConfigError(f"provider {name} needs a key; export {self.provider.key.env} or put it into --env-file")
        if self.key is not None and not _KEY.fullmatch(self.key):
            raise ConfigError(f"provider {name}: the key is empty or holds characters that no header can carry")
        unknown = sorted(self.features - set(self.provider.features))
        if unknown:
            known = ", ".join(sorted(self.provider.features)) or "none"
            raise ConfigError(f"provider {name} has no feature {unknown[0][:80]!r}; known are {known}")

    def permits(self, model: str) -> bool:
        """Whether an agent may ask for this model. A name permits its dated snapshots, a family all its models."""
        return any(self._names(pattern, model) for pattern in (self.model, *self.models))

    def _names(self, pattern: str, model: str) -> bool:
        family = self.provider.aliases.get(pattern)
        if family is not None and model != pattern:
            pattern = family
        if pattern.endswith("*"):
            return model.startswith(pattern[:-1]) and len(model) >= len(pattern)
        return model == pattern or (model.startswith(pattern) and _DATED.fullmatch(model, len(pattern)) is not None)

    def price(self, model: str) -> Price | None:
        """What tokens of a model cost; None where nobody said. The operator may state it for a family as well."""
        for prices in (self.prices, self.provider.prices):
            for name in (model, _undated(model)):
                if name in prices:
                    return prices[name]
            for name in prices:
                if name in self.provider.aliases and self._names(name, model):
                    return prices[name]
        return None

    def without_price(self) -> list[str]:
        """Permitted full names that no price is known for. Families are looked at when a request names a model."""
        names = sorted({self.model, *self.models} - set(self.provider.aliases))
        return [name for name in names if not name.endswith("*") and self.price(name) is None]


def _undated(model: str) -> str:
    match = re.fullmatch(rf"(.+?){_DATED.pattern}", model)
    return match[1] if match else model


def _check_url(url: str, provider: Provider) -> None:
    if not url:
        raise ConfigError(f"provider {provider.name} needs a base_url, such as http://127.0.0.1:8000/v1")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = parts.scheme == "http" and (provider.plain_http or _is_loopback(parts.hostname or ""))
    if parts.scheme != "https" and not plain:
        raise ConfigError(f"provider {provider.name}: base_url must begin with https:// (http:// only on loopback)")
    if not parts.hostname or port == 0 or parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(f"provider {provider.name}: base_url must be a plain URL without user, query or fragment")
    if not re.fullmatch(r"[\x21-\x7e]+", url) or re.search(r"//|/\.\.?(/|$)|[%\\;]", parts.path):
        raise ConfigError(f"provider {provider.name}: base_url holds a path that is not plain")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
