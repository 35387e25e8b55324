"""`task.toml` of Harbor and `task.yaml` of Terminal-Bench, as far as a sandbox can follow them. Pure."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from securebench import _yaml
from securebench._domains import canonical_domain
from securebench.importers.base import CannotConvert

AGENT_SECONDS, TEST_SECONDS = 360.0, 60.0
"""What Terminal-Bench gives where a task says nothing."""
VERIFIER_SECONDS = 600.0
"""What Harbor gives to tests."""
MAX_SECONDS = 86_400.0
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG])B?", re.IGNORECASE)
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_TOLD = ("difficulty", "category", "tags")
_READ = ("instruction", "descriptions", "parser_name", "max_agent_timeout_sec", "max_test_timeout_sec")
"""What of `task.yaml` has a place of its own."""
_AUTHORS = ("author_name", "author_email")


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task says of itself. `instruction` is None where it has a file of its own."""

    instruction: str | None
    agent_seconds: float | None
    test_seconds: float
    resources: Mapping[str, Any]
    domains: tuple[str, ...]
    image: str | None
    workdir: str
    metadata: Mapping[str, Any]
    notes: tuple[str, ...]


def read_toml(data: bytes) -> TaskFile:
    """Raises CannotConvert."""
    try:
        whole = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise CannotConvert("task.toml cannot be read", str(error)) from None
    agent, verifier, environment = (_table(whole, name) for name in ("agent", "verifier", "environment"))
    _refuse(whole, agent, verifier, environment)
    domains, notes = _network(environment, agent)
    if agent.get("user") or verifier.get("user"):
        notes.append("a user is named; here nobody is root, and files belong to one user")
    if _table(whole, "solution").get("env"):
        notes.append("the solution wants variables, which it does not get")
    metadata = _metadata(_table(whole, "metadata"), _table(whole, "task"))
    notes += _dropped("metadata", _table(whole, "metadata"), metadata)
    return TaskFile(
        instruction=None,
        agent_seconds=_seconds(agent, "agent", None),
        test_seconds=_seconds(verifier, "verifier", VERIFIER_SECONDS) or VERIFIER_SECONDS,
        resources=_resources(environment),
        domains=domains,
        image=_text(environment, "docker_image"),
        workdir=_text(environment, "workdir") or "",
        metadata=metadata,
        notes=tuple(notes),
    )


def read_yaml(data: bytes, name: str) -> TaskFile:
    """Raises CannotConvert."""
    document = _yaml.parse(data, name)
    value = document.value
    if not isinstance(value, dict) or document.problems:
        detail = str(document.problems[0]) if document.problems else "not a mapping"
        raise CannotConvert("task.yaml cannot be read", detail)
    parser = value.get("parser_name", "pytest")
    if parser != "pytest":
        raise CannotConvert("its tests are read by another parser than that of pytest", str(parser)[:60])
    metadata = _metadata(value, {})
    return TaskFile(
        instruction=_instruction(value),
        agent_seconds=_seconds(value, "task", AGENT_SECONDS, "max_agent_timeout_sec"),
        test_seconds=_seconds(value, "task", TEST_SECONDS, "max_test_timeout_sec") or TEST_SECONDS,
        resources={},
        domains=(),
        image=None,
        workdir="",
        metadata=metadata,
        notes=tuple(_dropped("task.yaml", value, (*metadata, *_READ))),
    )


def _instruction(value: Mapping[str, Any]) -> str:
    """Older tasks have several, of which `base` is the one that is scored."""
    found = value.get("instruction")
    if found is None and isinstance(described := value.get("descriptions"), list):
        bases = [one.get("description") for one in described if isinstance(one, dict) and one.get("key") == "base"]
        found = bases[0] if len(bases) == 1 else None
    if not isinstance(found, str) or not found.strip():
        raise CannotConvert("has no instruction", field="instruction")
    return found


def _refuse(
    whole: Mapping[str, Any], agent: Mapping[str, Any], verifier: Mapping[str, Any], environment: Mapping[str, Any]
) -> None:
    """What a sandbox cannot be."""
    if whole.get("steps"):
        raise CannotConvert("has several steps")
    if environment.get("gpus") or environment.get("tpu"):
        raise CannotConvert("needs a GPU")
    if str(environment.get("os", "linux")).lower() != "linux":
        raise CannotConvert("is not for Linux", str(environment.get("os"))[:40])
    if environment.get("mcp_servers"):
        raise CannotConvert("needs servers for its agent", "environment.mcp_servers")
    if environment.get("healthcheck"):
        raise CannotConvert("waits for a service", "environment.healthcheck")
    for table, name in ((environment, "environment"), (verifier, "verifier")):
        if table.get("env"):
            raise CannotConvert("needs variables", f"{name}.env")
    if verifier.get("environment") or verifier.get("collect"):
        raise CannotConvert("its tests need an image of their own", "verifier.environment")
    for table, name in ((agent, "agent"), (verifier, "verifier")):
        if table.get("network_mode") not in (None, "no-network", "allowlist", "public"):
            raise CannotConvert("wants a network that is not known", f"{name}.network_mode")
    if verifier.get("network_mode") == "allowlist":
        raise CannotConvert("its tests need the network", "verifier.network_mode")


def _network(environment: Mapping[str, Any], agent: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Exact host names are kept; where a task allows the whole network, which is what Harbor does unless told
    otherwise, agents have none here."""
    stated = agent if agent.get("network_mode") else environment
    mode = stated.get("network_mode")
    if mode == "allowlist":
        hosts = stated.get("allowed_hosts") or []
        try:
            return tuple(canonical_domain(str(host)) for host in hosts), []
        except ValueError:
            raise CannotConvert("wants hosts that are no exact names", str(hosts)[:100]) from None
    if mode == "public" or (mode is None and environment.get("allow_internet") is True):
        return (), ["the task allows the whole network; here agents have none"]
    return (), []


def _resources(environment: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cpus = environment.get("cpus")
    if isinstance(cpus, int | float) and not isinstance(cpus, bool) and 0 < cpus <= 1024:
        found["cpus"] = cpus
    for name, ours in (("memory", "memory"), ("storage", "disk")):
        size = environment.get(f"{name}_mb")
        if isinstance(size, int) and not isinstance(size, bool) and size > 0:
            found[ours] = f"{size}m"
        elif isinstance(text := environment.get(name), str) and (match := _SIZE.fullmatch(text.strip())):
            found[ours] = int(float(match[1]) * _UNITS[match[2].upper()])
    return found


def _seconds(table: Mapping[str, Any], name: str, default: float | None, key: str = "timeout_sec") -> float | None:
    value = table.get(key, default)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise CannotConvert(f"{name}.{key} is no number of seconds", field=key)
    return min(float(value), MAX_SECONDS)


def _metadata(table: Mapping[str, Any], package: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _TOLD:
        value = table.get(name)
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            found[name] = value
    if "tags" not in found and isinstance(words := package.get("keywords"), list):
        found["tags"] = [str(word) for word in words]
    if isinstance(called := package.get("name"), str):
        found["harbor_name"] = called
    return found


def _dropped(where: str, table: Mapping[str, Any], kept: Collection[str]) -> list[str]:
    """What to say of what is not kept, since nobody knows whether it holds the answer. Authors go without saying."""
    names = sorted(str(name) for name in table if name not in (*kept, *_AUTHORS))
    return [f"{where} is kept without {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"] if names else []


def _table(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = whole.get(name, {})
    if not isinstance(value, dict):
        raise CannotConvert(f"task.toml: {name} is no table", field=name)
    return value


def _text(table: Mapping[str, Any], name: str) -> str | None:
    value = table.get(name)
    return value if isinstance(value, str) and value else None
