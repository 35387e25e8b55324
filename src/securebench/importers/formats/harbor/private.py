"""What of a task agents may not get, by its name and by what is in it.

By name: tests, solution and the task's own files, wherever a Dockerfile's context begins. By content: a file that is
one of the solution's or one of the test programs, or holds the text of one, under whatever name."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping

from securebench._fs import CHUNK
from securebench.importers.base import CannotConvert
from securebench.importers.formats.harbor.directory import TaskDirectory
from securebench.importers.sources.base import SourceFile

NAMES = ("tests", "solution", "solution.sh", "solution.yaml", "run-tests.sh", "task.yaml", "task.toml")
"""What of a task's directory no image and no workspace may hold."""
_SOLUTION = re.compile(r"solution/.+|solution\.(?:sh|yaml)")
_PROGRAM = re.compile(r"run-tests\.sh|tests/(?:.*/)?(?:test\.sh|test_[^/]*\.py|[^/]*_test\.py)")
_TEXT = 4 * 2**20
_LEAST = 32
"""Characters that a text must have to be looked for in others; shorter ones are found by chance."""


def is_private(folder: str, path: str) -> bool:
    """Whether a path of a context that begins at `folder` is that of tests, solution or task file."""
    whole = posixpath.normpath(posixpath.join(folder, path.lstrip("/") or "."))
    return whole.partition("/")[0] in NAMES


class Secrets:
    """The solution and the tests of a task, to be looked for in what agents get."""

    def __init__(self, task: TaskDirectory) -> None:
        self._texts: dict[str, str] = {}  # without blank lines and comments → where it is
        self._files: dict[bytes, str] = {}
        self._data: dict[bytes, str] = {}  # files of tests that are no program
        for path, file in sorted(task.files.items()):
            secret = _SOLUTION.fullmatch(path) or _PROGRAM.fullmatch(path)
            if not secret and not path.startswith("tests/"):
                continue
            content = _plain(file)
            if content == "":
                continue
            (self._files if secret else self._data).setdefault(digest_of(file), path)
            if secret and content is not None and len(content) >= _LEAST:
                self._texts.setdefault(content, path)

    def kept_from(self, files: Mapping[str, SourceFile]) -> tuple[str, ...]:
        """Raises CannotConvert where one of these is, or holds, a part of the solution or a test. What to say of data
        that tests have, too: it may be what they expect, or only what was given."""
        shared = []
        for shown, file in files.items():
            digest = digest_of(file)
            found = self._files.get(digest) or self._within(_plain(file))
            if found is not None:
                raise _gives_away(shown, found)
            if digest in self._data:
                shared.append(shown)
        return (f"agents get what its tests have, too: {', '.join(shared[:5])}",) if shared else ()

    def refuse_text(self, shown: str, text: str) -> None:
        """The same of a text. Raises CannotConvert."""
        if (found := self._within(_lines(text))) is not None:
            raise _gives_away(shown, found)

    def _within(self, content: str | None) -> str | None:
        if content is None:
            return None
        return next((path for text, path in self._texts.items() if text in content), None)


def _gives_away(shown: str, found: str) -> CannotConvert:
    return CannotConvert("agents would get a part of its tests or solution", f"{shown} holds {found}")


def digest_of(file: SourceFile) -> bytes:
    sha = hashlib.sha256()
    with file.open() as opened:
        while chunk := opened.read(CHUNK):
            sha.update(chunk)
    return sha.digest()


def _plain(file: SourceFile) -> str | None:
    """Its text in the form in which texts are compared; None for what is too large to be one."""
    return None if file.size > _TEXT else _lines(file.read(_TEXT).decode("utf-8", "replace"))


def _lines(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#"))
