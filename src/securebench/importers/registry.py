"""The formats SecureBench imports. A new one is one more line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from securebench._schema import suggest
from securebench.errors import ConfigError
from securebench.importers.base import Format
from securebench.importers.formats import (
    evalplus,
    gpqa,
    gsm8k,
    harbor,
    humaneval,
    inspect,
    livecodebench,
    mapped,
    math,
    mbpp,
    mmlu,
    simpleqa,
    swebench,
)

_ALL: tuple[Format, ...] = (
    humaneval.FORMAT,
    mbpp.FORMAT,
    evalplus.FORMAT,
    livecodebench.FORMAT,
    gsm8k.FORMAT,
    math.FORMAT,
    mmlu.FORMAT,
    gpqa.FORMAT,
    simpleqa.FORMAT,
    swebench.FORMAT,
    harbor.HARBOR,
    harbor.TERMINAL_BENCH,
    inspect.FORMAT,
    mapped.FORMAT,
)
FORMATS: Mapping[str, Format] = MappingProxyType({one.name: one for one in _ALL})


def find_format(name: str) -> Format:
    """The format of that name. Raises ConfigError."""
    if name not in FORMATS:
        raise ConfigError(
            f"there is no format {name!r}{suggest(name, FORMATS)}; there are: {', '.join(sorted(FORMATS))}"
        )
    return FORMATS[name]


def check_settings(chosen: Format, given: Mapping[str, str]) -> dict[str, str]:
    """All settings of a format, with what was given for some of them. Raises ConfigError for one it does not know,
    and for a value that cannot be meant."""
    for name, value in given.items():
        if name not in chosen.settings:
            known = ", ".join(sorted(chosen.settings)) or "none"
            raise ConfigError(
                f"{chosen.name} has no setting {name!r}{suggest(name, chosen.settings)}; there are: {known}"
            )
        known_values = chosen.settings[name].choices
        if known_values and value not in known_values:
            raise ConfigError(f"{name} is {' or '.join(known_values)}, not {value!r}")
    return {name: given.get(name, setting.default) for name, setting in chosen.settings.items()}
