"""Provider files, ours and the operator's."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from securebench import _fs, _yaml
from securebench._schema import Schema
from securebench.egress.providers.schema import Provider
from securebench.errors import ConfigError, Problem, os_reason

_HERE = Path(__file__).parent
_SCHEMA: Schema[Provider] = Schema(Provider)


def provider_names() -> tuple[str, ...]:
    """The providers that come with SecureBench."""
    return tuple(sorted(path.stem for path in _HERE.glob("*.yaml")))


@cache
def load_provider(name: str) -> Provider:
    """One of ours, by name. Raises ConfigError."""
    if name not in provider_names():
        known = ", ".join(provider_names())
        raise ConfigError(f"unknown provider {name[:80]!r}; known are {known}, or give the path of a provider file")
    return load_provider_file(_HERE / f"{name}.yaml")


def load_provider_file(path: Path | str) -> Provider:
    """The operator's own file. Raises ConfigError with every problem of it."""
    path = Path(path)
    try:
        with _fs.open_named(path) as file:
            data = file.read(_yaml.MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, "", os_reason(error))]) from error
    result = _SCHEMA.check(_yaml.parse(data, str(path)))
    if isinstance(result, list):
        raise ConfigError(result)
    return result
