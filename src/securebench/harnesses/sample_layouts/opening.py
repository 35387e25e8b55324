"""Which layout a source has, told by what it holds and never by its name."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from securebench._fs import open_directory, open_named
from securebench.errors import ConfigError, Problem
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_layouts import base
from securebench.harnesses.sample_layouts.base import CHUNK, Reading, open_spool
from securebench.harnesses.sample_layouts.directories import EvalPlusFolder, Folder
from securebench.harnesses.sample_layouts.documents import Predictions, Shape, shape_of
from securebench.harnesses.sample_layouts.harbor_jobs import RESULT, HarborFolder
from securebench.harnesses.sample_layouts.inspect_logs import InspectJson, InspectZip
from securebench.harnesses.sample_layouts.lines import Lines

STDIN = "-"
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"


@contextmanager
def open_reading(path: Path, name: str, kinds: Mapping[str, CandidateKind]) -> Iterator[Reading]:
    """Raises ConfigError, and OSError, EOFError or zlib.error for what cannot be read."""
    with ExitStack() as stack:
        if str(path) != STDIN and path.is_dir():
            folder = Folder(stack.enter_context(open_directory(path)), path)
            spool = stack.enter_context(open_spool(name))
            found = any(folder.has(*parts, RESULT) for parts in [(), *((one,) for one in folder.folders())])
            yield (HarborFolder if found else EvalPlusFolder)(folder, spool, kinds)
            return
        file = _plain(path, name, stack)
        head = file.read(base.MAX_LINE)
        file.seek(0)
        if head.startswith(_ZIP):
            archive, digest = _spooled(file, name, stack)
            yield InspectZip(archive, name, stack.enter_context(open_spool(name)), digest)
            return
        shape = shape_of(head)
        del head
        if shape is Shape.LINES:
            yield Lines(file, name)
        elif shape is Shape.INSPECT:
            yield InspectJson(file, name, stack.enter_context(open_spool(name)))
        else:
            yield Predictions(file, name, stack.enter_context(open_spool(name)), shape is Shape.KEYED)


def _plain(path: Path, name: str, stack: ExitStack) -> BinaryIO:
    """What was packed or piped, from a file that can be read again."""
    if str(path) == STDIN:
        file, _ = _spooled(stack.enter_context(os.fdopen(os.dup(0), "rb")), name, stack)
    else:
        file = stack.enter_context(open_named(path))
    packed = file.read(2) == _GZIP
    file.seek(0)
    return _spooled(stack.enter_context(gzip.GzipFile(fileobj=file)), name, stack)[0] if packed else file


def _spooled(source: BinaryIO | gzip.GzipFile, name: str, stack: ExitStack) -> tuple[BinaryIO, str]:
    """A copy without a name anywhere, so that nobody else can open it and nothing stays; and its digest."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 — the stack closes it
    size, sha = 0, hashlib.sha256()
    while data := source.read(CHUNK):
        size += len(data)
        if size > base.MAX_BYTES:
            raise ConfigError([Problem(name, 0, "", f"has more than {base.MAX_BYTES} bytes")])
        sha.update(data)
        file.write(data)
    file.flush()
    file.seek(0)
    return file, f"sha256:{sha.hexdigest()}"
