"""`task.toml` of a row, and what of the row it cannot say. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from securebench.converters.harbor.toml_text import NoToml, toml_document, toml_value
from securebench.environment import TaskEnvironment

SCHEMA = "1.4"
_MIB = 2**20
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_CALLED = "harbor_name"
"""Where the importer keeps the name that a task has in Harbor."""


def task_toml(
    environment: TaskEnvironment,
    metadata: Mapping[str, Any],
    *,
    test_seconds: float,
    whole_image: str | None,
) -> tuple[str, list[str]]:
    """The file and the notes. With `whole_image` that image is the environment, with nothing copied into it."""
    kept, notes = _metadata(metadata)
    table: dict[str, Any] = {} if whole_image is None else {"docker_image": whole_image}
    if whole_image is not None:
        table["workdir"] = environment.workdir
    if environment.cpus is not None:
        table["cpus"] = math.ceil(environment.cpus)
        if table["cpus"] != environment.cpus:
            notes.append(f"cpus is rounded up to {table['cpus']}; not every Harbor takes parts of one")
    for name, key, size in (("memory", "memory_mb", environment.memory), ("disk", "storage_mb", environment.disk)):
        if size is not None:
            table[key] = -(-size // _MIB)
            if size % _MIB:
                notes.append(f"{name} is rounded up to {table[key]} MiB")
    if environment.pids is not None:
        notes.append(f"its limit of {environment.pids} processes has no place in Harbor")
    if environment.allowed_domains:
        table |= {"network_mode": "allowlist", "allowed_hosts": list(environment.allowed_domains)}
    else:
        table["network_mode"] = "no-network"
    called = metadata.get(_CALLED)
    tables: dict[str, Mapping[str, Any]] = {
        "task": {"name": called} if isinstance(called, str) and _NAME.fullmatch(called) and ".." not in called else {},
        "metadata": kept,
        "verifier": {"timeout_sec": float(test_seconds)},
        "agent": {} if environment.timeout_seconds is None else {"timeout_sec": float(environment.timeout_seconds)},
        "environment": table,
    }
    return toml_document({"schema_version": SCHEMA}, tables), notes


def _metadata(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    kept: dict[str, Any] = {}
    notes = []
    for name, value in given.items():
        if name == _CALLED:
            continue
        try:
            toml_value(value)
        except NoToml as error:
            notes.append(f"metadata.{name} is left out: TOML cannot hold {error}")
        else:
            kept[name] = value
    return kept, notes
