"""The operator's own files, read as inputs of a program. What cannot be read is told kindly."""

from __future__ import annotations

import difflib
from pathlib import Path, PurePosixPath

from securebench._fs import UnsafeEntry, open_directory, open_named, read_bounded, walk
from securebench._paths import relative_path
from securebench.errors import ConfigError, os_reason
from securebench.sandboxes.base import MIB

MAX_PROGRAM = 16 * MIB
MAX_INPUTS = 256 * MIB
MAX_FILES = 10_000
FALLBACK_NAME = "program.py"


def read_program(path: Path) -> tuple[str, bytes]:
    """(the name its file gets, its bytes). Raises ConfigError for what is not a readable file of a sane size."""
    if path.is_dir():
        main = path / "__main__.py"
        hint = f"; did you mean {main}?" if main.is_file() else "; name a Python file"
        raise ConfigError(f"{path} is a directory{hint}")
    return _name(path), _read(path, MAX_PROGRAM)


def read_inputs(paths: tuple[Path, ...]) -> dict[str, bytes]:
    """Files by their own name, directories as trees beneath theirs. Raises ConfigError."""
    found: dict[str, bytes] = {}
    for path in paths:
        name = path.name or path.resolve().name
        for inner, data in _tree(path) if path.is_dir() else [(PurePosixPath(), _read(path, MAX_INPUTS))]:
            target = str(PurePosixPath(name) / inner)
            if target in found:
                raise ConfigError(f"two inputs would both be called {target}; rename one")
            found[target] = data
        if sum(map(len, found.values())) > MAX_INPUTS:
            raise ConfigError(f"the inputs hold more than {MAX_INPUTS // MIB} MiB")
    return found


def _name(path: Path) -> str:
    try:
        return str(relative_path(path.name))
    except ValueError:
        return FALLBACK_NAME


def _read(path: Path, limit: int) -> bytes:
    try:
        with open_named(path) as file:
            return read_bounded(file.fileno(), limit, str(path))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist{_suggestion(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path} {os_reason(error)}") from None
    except UnsafeEntry as error:
        raise ConfigError(str(error)) from None


def _tree(path: Path) -> list[tuple[PurePosixPath, bytes]]:
    budget, files = MAX_INPUTS, []
    try:
        with open_directory(path) as root:
            for entry in walk(root, PurePosixPath(), MAX_FILES):
                if not entry.is_dir:
                    data = read_bounded(entry.descriptor, budget, f"{path}/{entry.path}")
                    budget -= len(data)
                    files.append((entry.path, data))
    except OSError as error:
        raise ConfigError(f"{path} {os_reason(error)}") from None
    except UnsafeEntry as error:
        raise ConfigError(f"{path}: {error}") from None
    return files


def _suggestion(path: Path) -> str:
    """The name there is that the operator most likely meant."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix == path.suffix]
    except OSError:
        return f"; nor does {path.parent}" if not path.parent.exists() else ""
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / close[0]}?" if close else ""
