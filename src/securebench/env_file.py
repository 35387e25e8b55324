"""The env file: `NAME=value` lines that hold what a tester file only names."""

from __future__ import annotations

import re
from pathlib import Path

from securebench import _fs
from securebench.errors import ConfigError, Problem, os_reason

MAX_ENV_BYTES = 256 * 1024

_ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", re.ASCII)


def load_env_file(path: Path | str) -> dict[str, str]:
    """`NAME=value` lines, with comments, `export` and matching quotes. Raises ConfigError; never shows a value."""
    path = Path(path)
    try:
        with _fs.open_named(path) as file:
            data = file.read(MAX_ENV_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, "", os_reason(error))]) from error
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([Problem(str(path), place, "", "not UTF-8")]) from None  # the cause holds the whole file
    if len(data) > MAX_ENV_BYTES:
        raise ConfigError([Problem(str(path), 0, "", f"file is larger than {MAX_ENV_BYTES} bytes")])
    result: dict[str, str] = {}
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(stripped)
        if match is None:
            problems.append(Problem(str(path), number, "", "expected NAME=value"))
            continue
        name, value = match[1], _env_value(match[2].strip())
        if value is None or "\0" in value:
            problems.append(Problem(str(path), number, name, "has unbalanced quotes or a NUL character"))
        elif name in result:
            problems.append(Problem(str(path), number, name, "is set twice"))
        else:
            result[name] = value
    if problems:
        raise ConfigError(problems)
    return result


def _env_value(text: str) -> str | None:
    """What stands between quotes, or before a comment; None where a quote is not closed."""
    if text[:1] in {"'", '"'}:
        value, closed, rest = text[1:].partition(text[0])
        return value if closed and (not rest or rest.lstrip().startswith("#")) else None
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
