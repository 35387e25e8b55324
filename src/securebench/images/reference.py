"""Names of images: `[host/]path[:tag][@sha256:…]`, and the one key under which each is kept.

`python`, `python:latest` and `docker.io/library/python:latest` are the same image, as everywhere else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from securebench.errors import ConfigError

_MAX = 512
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?|\[[0-9a-fA-F:]{2,45}\](?::[0-9]{1,5})?")
_PART = re.compile(r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DEFAULT_HOST = "docker.io"  # what an image name without a host means, everywhere


def is_digest(text: str) -> bool:
    """True for a complete `sha256:…`."""
    return _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed name. A digest decides alone; a tag beside it is dropped, as Docker does."""

    name: str
    tag: str | None
    digest: str | None

    @property
    def key(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Raises ConfigError with the rule that was broken."""
        if len(text) > _MAX:
            raise ConfigError(f"image name {text[:40]!r}… is longer than {_MAX} characters")
        rest, at, digest = text.partition("@")
        if at and not is_digest(digest):
            raise ConfigError(f"image name {text!r}: after '@' comes sha256: and 64 lower-case hex digits")
        name, tag = _split_tag(rest)
        if tag is not None and not _TAG.fullmatch(tag):
            raise ConfigError(f"image name {text!r}: tag {tag!r} is not letters, digits, '_', '.', '-' (at most 128)")
        return cls(_familiar(name, text), None if at else tag or "latest", digest if at else None)


def _split_tag(text: str) -> tuple[str, str | None]:
    slash, colon = text.rfind("/"), text.rfind(":")
    return (text[:colon], text[colon + 1 :]) if colon > slash else (text, None)


def _familiar(name: str, shown: str) -> str:
    host, parts = _split_host(name)
    if not parts or any(not _PART.fullmatch(part) for part in parts):
        raise ConfigError(
            f"image name {shown!r} is not [host/]name[:tag][@sha256:…]; names are lower-case letters and digits, "
            "with '.', '_' or '-' between them"
        )
    if host is None or host == _DEFAULT_HOST:
        return "/".join(parts[1:] if len(parts) == 2 and parts[0] == "library" else parts)
    if not _HOST.fullmatch(host):
        raise ConfigError(f"image name {shown!r}: {host!r} is not a host name")
    return "/".join([host.lower(), *parts])


def _split_host(name: str) -> tuple[str | None, list[str]]:
    first, *others = name.split("/")
    if others and ("." in first or ":" in first or first == "localhost"):
        return first, others
    return None, [first, *others]
