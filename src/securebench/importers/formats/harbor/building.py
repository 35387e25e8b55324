"""Images of tasks that have to be built: by a container engine of this host, on the operator's word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath

import anyio

from securebench import _fs
from securebench._canonical import digest_value
from securebench._leftovers import staging_directory
from securebench.importers.base import CannotConvert
from securebench.importers.formats.harbor.private import digest_of
from securebench.importers.sources.base import SourceFile
from securebench.sandboxes._docker.client import Client

SECONDS = 1800.0
_TOLD = 400


def image_name(name: str, context: Mapping[str, SourceFile], dockerfile: str) -> str:
    """What a task's image is called: the same for the same files, whoever builds it."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "task"
    lines = [[path, context[path].executable, digest_of(context[path]).hex()] for path in sorted(context)]
    return f"securebench-tasks/{plain}:{digest_value([dockerfile, lines]).removeprefix('sha256:')[:16]}"


def build_image(client: Client, name: str, context: Mapping[str, SourceFile], dockerfile: str) -> None:
    """Build it from these files. Raises CannotConvert where that fails, SandboxError where nobody answers."""
    with staging_directory() as staging:
        (place := staging / "context").mkdir()
        _lay_out(context, place)
        words = ["build", "-t", name, "-f", str(place / dockerfile), str(place)]
        done = anyio.run(partial(client.attempt, f"building {name}", words, timeout=SECONDS))
    if not done.ok:
        said = done.stderr.decode("utf-8", "replace").strip()[-_TOLD:]
        raise CannotConvert("its image could not be built", said)


def _lay_out(context: Mapping[str, SourceFile], place: Path) -> None:
    with _fs.open_directory(place) as root:
        for path, file in context.items():
            with file.open() as opened:
                _fs.write_new(root, PurePosixPath(path), opened.fileno(), 0o755 if file.executable else 0o644)
