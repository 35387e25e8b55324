"""The hidden side of a task that runs code, as texts to look for."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from securebench import _fs
from securebench.audit.pack.derived import HiddenTests
from securebench.audit.pack.leaks import Secret
from securebench.benchmark_pack import MAX_ASSET_ENTRIES
from securebench.errors import InfrastructureError, PackError
from securebench.resources import PackFile, Resource, Visibility
from securebench.tasks import SecureBenchTask

MOST_BYTES, MOST_TREE_BYTES = 4 * 2**20, 2**26
SMALLEST_COPY = 32
"""Bytes from which two files with the same content are no coincidence."""
_NOT_SECRET = frozenset(
    {"mutants", "equivalent_mutants", "candidate_policy", "needed_commands", "fail_to_pass", "pass_to_pass"}
    | {"source", "workdir", "timeout_seconds", "command", "run", "compile", "compare", "path", "mount", "assurance"}
    | {"reward", "python"}
)
_OVERLAY = "reference_workspace"
_HEADS = ("def ", "async def ", "class ", "import ", "from ", "@")


@dataclass(frozen=True)
class Hidden:
    """What a task hides."""

    task: SecureBenchTask

    @cached_property
    def _files(self) -> list[tuple[str, PurePosixPath, bytes]]:
        """Field, place among the agent's files, content."""
        found = []
        for resource in self._resources:
            for file in resource.files:
                inside = PurePosixPath() if resource.name == _OVERLAY else file.mount
                found += [(resource.name, inside / path, data) for path, data in pack_files(file)]
        return found

    @property
    def _resources(self) -> list[Resource]:
        return [
            resource
            for resource in self.task.resources.resources
            if resource.visibility is not Visibility.PUBLIC and resource.name not in _NOT_SECRET
        ]

    @cached_property
    def secrets(self) -> list[Secret]:
        texts = [(resource.name, text) for resource in self._resources for text in _leaves(resource.value)]
        texts += [(field, data.decode("utf-8", "replace")) for field, _, data in self._files]
        return [Secret(f"eval.{field}", _telling(field, text)) for field, text in texts]

    @cached_property
    def copies(self) -> dict[str, str]:
        """Digests of whole files, with the fields they are of."""
        return {
            hashlib.sha256(data).hexdigest(): f"eval.{field}"
            for field, _, data in self._files
            if len(data) >= SMALLEST_COPY
        }

    @cached_property
    def places(self) -> frozenset[str]:
        """Where hidden files come to lie; an agent may have another version there."""
        return frozenset(str(place) for _, place, _ in self._files)

    @cached_property
    def gold(self) -> str:
        """The gold patch, or nothing."""
        for resource in self._resources:
            if resource.name == "gold_patch":
                value = resource.value
                if isinstance(value, str):
                    return value
                if isinstance(value, dict) and "patch" in value:
                    return str(value["patch"])
                return "".join(
                    data.decode("utf-8", "replace") for field, _, data in self._files if field == "gold_patch"
                )
        return ""

    @cached_property
    def tests(self) -> HiddenTests:
        value = next((one.value for one in self.task.resources.resources if one.name == "tests"), None)
        ids = value.get("fail_to_pass", ()) if isinstance(value, dict) else ()
        tests = [str(place) for field, place, _ in self._files if field in ("tests", "checker", "test_files")]
        return HiddenTests.of(tests, ids)


def pack_files(file: PackFile) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The regular files at and beneath a file of the pack, as many as can be looked at. Raises PackError."""
    room = MOST_TREE_BYTES
    try:
        with _fs.open_directory(file.root) as root:
            for entry in _fs.walk(root, file.path, MAX_ASSET_ENTRIES):
                if not entry.is_dir and entry.size <= min(room, MOST_BYTES):
                    room -= entry.size
                    yield entry.path, _fs.read_bounded(entry.descriptor, MOST_BYTES, str(entry.path))
    except _fs.UnsafeEntry as error:
        raise PackError(str(error)) from error
    except OSError as error:
        raise InfrastructureError(f"{file.path}: {error.strerror}") from error


def _leaves(value: Any, key: str = "") -> Iterator[str]:
    if key in _NOT_SECRET:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    elif isinstance(value, str):
        yield value


def _telling(field: str, text: str) -> str:
    """What of a hidden text is its own: of a patch what it adds, of a solution what is not its head or description."""
    if "\n@@ -" in text:
        return "\n".join(line[1:] for line in text.splitlines() if line.startswith("+") and not line.startswith("+++"))
    if field in ("reference_solution", "canonical_solution"):
        return "\n".join(_bodies(text))
    return text


def _bodies(source: str) -> list[str]:
    lines = source.splitlines()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return [line for line in lines if not line.strip().startswith(_HEADS)]
