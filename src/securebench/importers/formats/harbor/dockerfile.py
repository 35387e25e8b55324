"""Reads a Dockerfile as far as that is safe without building it. Pure.

A Dockerfile that only says which image it starts from, where the work is done and which files lie there can be had
without a build: the image is the one it starts from, the files are assets. Everything that would execute or depend on
something else (`RUN`, variables, stages, addresses, archives) needs one, and `needs_build` says why."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from securebench import _json

MAX_BYTES = 256 * 1024
_IGNORED = {
    "CMD",
    "ENTRYPOINT",
    "EXPOSE",
    "LABEL",
    "MAINTAINER",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "SHELL",
    "VOLUME",
    "USER",
}
_IGNORED |= {"ARG", "ONBUILD"}
_KNOWN = _IGNORED | {"FROM", "RUN", "COPY", "ADD", "ENV", "WORKDIR"}
_HARMLESS = {"DEBIAN_FRONTEND", "LANG", "LC_ALL", "PIP_NO_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
"""Variables that make no difference to what programs compute."""
_ARCHIVE = re.compile(r".*\.(?:tar|tar\.\w+|tgz|txz|tbz2?|zip)", re.IGNORECASE)
_MODE = re.compile(r"--chmod=[0-7]{3,4}")


class NotADockerfile(ValueError):
    """What is wrong, and where."""


@dataclass(frozen=True, slots=True)
class Instruction:
    line: int
    word: str
    rest: str


@dataclass(frozen=True, slots=True)
class Copy:
    """Files of the context (`source`, `.` for all of it) and where they go (`target`, absolute). `into`: the target is
    a directory. `executable`: what a mode says, None where none does."""

    line: int
    source: str
    target: str
    into: bool
    executable: bool | None = None


@dataclass(slots=True)
class Dockerfile:
    """What is known of the image without building it. `workdir` is empty where it is the base image's own."""

    base: str = ""
    workdir: str = ""
    copies: list[Copy] = field(default_factory=list)
    needs_build: list[str] = field(default_factory=list)
    entrypoint: bool = False  # whether a program of its own is started with it


def read_dockerfile(text: str) -> Dockerfile:
    """Raises NotADockerfile."""
    reader = _Reader()
    for instruction in _instructions(text):
        reader.take(instruction)
    if not reader.stages:
        raise NotADockerfile("has no FROM")
    return reader.found


def files_of(copy: Copy, context: Mapping[str, bool]) -> dict[str, tuple[str, bool]]:
    """The files that an instruction copies out of a context (path → whether it is executable): absolute target → path
    in the context and whether it is executable there. Raises NotADockerfile where there is none."""
    source = posixpath.normpath(copy.source.lstrip("/") or ".")
    found: dict[str, tuple[str, bool]] = {}
    if source in context:
        target = posixpath.join(copy.target, PurePosixPath(source).name) if copy.into else copy.target
        found[target] = source, context[source]
    else:
        prefix = "" if source == "." else f"{source}/"
        for path, executable in context.items():
            if path.startswith(prefix):
                found[posixpath.join(copy.target, path.removeprefix(prefix))] = path, executable
    if not found:
        raise NotADockerfile(f"copies {copy.source!r}, which is not there (line {copy.line})")
    if copy.executable is None:
        return found
    return {target: (path, copy.executable) for target, (path, _) in found.items()}


class _Reader:
    def __init__(self) -> None:
        self.found = Dockerfile()
        self.stages = 0

    def take(self, one: Instruction) -> None:
        if one.word == "ARG" and not self.stages:
            return
        if one.word != "FROM" and not self.stages:
            raise NotADockerfile(f"does not begin with FROM (line {one.line})")
        if one.word in _IGNORED:
            self.found.entrypoint |= one.word == "ENTRYPOINT"
            return
        if "$" in one.rest and one.word in ("COPY", "ADD", "WORKDIR"):
            self._build(one, "uses a variable")
            if one.word == "WORKDIR":
                self.found.workdir = ""
            return
        getattr(self, f"_{one.word.lower()}")(one)

    def _build(self, one: Instruction, why: str) -> None:
        self.found.needs_build.append(f"{one.word} {why} (line {one.line})")

    def _from(self, one: Instruction) -> None:
        words = [word for word in one.rest.split() if not word.startswith("--")]
        if not words:
            raise NotADockerfile(f"FROM names no image (line {one.line})")
        self.stages += 1
        if self.stages > 1:
            self._build(one, "begins another stage")
        elif words[0] == "scratch" or "$" in one.rest:
            self._build(one, "names no image that is known before")
        self.found = Dockerfile(base=words[0], needs_build=self.found.needs_build)

    def _workdir(self, one: Instruction) -> None:
        stated = one.rest.strip().strip("\"'")
        if not self.found.workdir and not stated.startswith("/"):
            self._build(one, "is beneath that of an image that is not known")
            return
        self.found.workdir = posixpath.normpath(posixpath.join(self.found.workdir, stated))

    def _run(self, one: Instruction) -> None:
        words = one.rest.split()
        made = [posixpath.normpath(word) for word in words[2:]]
        if words[:2] == ["mkdir", "-p"] and made and all(re.fullmatch(r"/[\w./-]*", path) for path in made):
            place = self.found.workdir or "/"
            if all(place == path or place.startswith(f"{path}/") for path in made):
                return
        self._build(one, "executes something")

    def _env(self, one: Instruction) -> None:
        names = {word.partition("=")[0] for word in one.rest.split()} if "=" in one.rest else {one.rest.split(" ")[0]}
        if not names <= _HARMLESS:
            self._build(one, "sets a variable")

    def _add(self, one: Instruction) -> None:
        if any("://" in word or word.startswith("git@") or _ARCHIVE.fullmatch(word) for word in one.rest.split()[:-1]):
            self._build(one, "unpacks or fetches something")
            return
        self._copy(one)

    def _copy(self, one: Instruction) -> None:
        flags, words = _words(one)
        executable = None
        for flag in flags:
            if _MODE.fullmatch(flag):
                executable = bool(int(flag.removeprefix("--chmod="), 8) & 0o111)
            elif not flag.startswith("--chown="):
                self._build(one, f"has {flag.partition('=')[0]}")
                return
        if len(words) < 2:
            raise NotADockerfile(f"{one.word} needs a source and a target (line {one.line})")
        *sources, target = words
        if "<<" in one.rest or any(char in source for source in sources for char in "*?[\\"):
            self._build(one, "has a pattern or a text of its own")
            return
        place = posixpath.normpath(posixpath.join(self.found.workdir or "/", target))
        into = target.endswith("/") or target in (".", "./", "..") or place == self.found.workdir or len(sources) > 1
        self.found.copies += [Copy(one.line, source, place, into, executable) for source in sources]


def _words(one: Instruction) -> tuple[list[str], list[str]]:
    """Flags and the rest, which may be a JSON list."""
    rest, flags = one.rest.strip(), []
    while rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        flags.append(flag)
        rest = rest.strip()
    if rest.startswith("["):
        try:
            value = _json.loads(rest)
        except _json.JsonError:
            value = None
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return flags, [str(item) for item in value]
    try:
        return flags, shlex.split(rest)
    except ValueError as error:
        raise NotADockerfile(f"{one.word} cannot be read: {error} (line {one.line})") from None


def _instructions(text: str) -> Iterator[Instruction]:
    """Lines that end with a backslash are joined; comments and blank lines are gone. Texts of an instruction's own
    (`<<EOF`) belong to it."""
    if len(text) > MAX_BYTES:
        raise NotADockerfile(f"has more than {MAX_BYTES} characters")
    if re.match(r"\s*#\s*escape\s*=\s*`", text):
        raise NotADockerfile("changes its own escape character")
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = line.rstrip()
        while whole.endswith("\\"):
            following = next(lines, None)
            if following is None:
                raise NotADockerfile(f"ends within an instruction (line {number})")
            if not following[1].lstrip().startswith("#"):
                whole = f"{whole[:-1]} {following[1].strip()}"
        word, rest = (*whole.split(None, 1), "")[:2]
        if word.upper() not in _KNOWN:
            raise NotADockerfile(f"{word[:40]!r} is no instruction (line {number})")
        for mark in re.findall(r"<<-?\s*[\"']?(\w+)", rest) if word.upper() in ("RUN", "COPY", "ADD") else ():
            while (following := next(lines, None)) is not None and following[1].strip() != mark:
                pass
        yield Instruction(number, word.upper(), rest.strip())
