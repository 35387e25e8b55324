"""Which image a reference means on this host. Resolved once, run by its id, so a moved tag changes nothing later."""

from __future__ import annotations

import re
from dataclasses import dataclass

from securebench.errors import ConfigError, SandboxError, SandboxUnavailable
from securebench.sandboxes._docker.client import Client
from securebench.sandboxes.base import DirectoryRoot, ImageRoot, Root

_ID = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-/:@]{0,511}")


@dataclass(frozen=True, slots=True)
class Image:
    """A local image. `digest` is the one its registry knows it by, the id of an image that came from none; `env` and
    `volumes` are what its author declared."""

    reference: str
    id: str
    digest: str
    env: tuple[tuple[str, str], ...]
    volumes: tuple[str, ...]


def reference_of(root: Root) -> str:
    """The image a spec names. Raises SandboxUnavailable for roots that containers do not have."""
    if isinstance(root, ImageRoot):
        if not _REFERENCE.fullmatch(root.reference):
            raise ConfigError(f"{root.reference!r} is not an image name")
        return root.reference
    kind = "a directory" if isinstance(root, DirectoryRoot) else "the host's own programs"
    raise SandboxUnavailable(
        f"the docker backend cannot run {kind} as root file system",
        "Name an image in `environment.image`, or use the bubblewrap backend.",
    )


async def resolve(client: Client, reference: str) -> Image:
    """The local image of that name. Never pulls. Raises SandboxUnavailable with the remedy when it is not there."""
    doing = f"looking for image {reference}"
    answer = await client.ask_json(doing, ["image", "inspect", reference])
    if not isinstance(answer, list) or len(answer) != 1 or not isinstance(answer[0], dict):
        raise SandboxError(f"{doing}: the engine's answer has an unexpected form")
    found = answer[0]
    identity = str(found.get("Id", ""))
    if not identity.startswith("sha256:"):
        identity = f"sha256:{identity}"  # podman leaves the algorithm out
    if not _ID.fullmatch(identity):
        raise SandboxError(f"{doing}: the engine gave no image id")
    config = found.get("Config") or {}
    pairs = (str(entry).partition("=") for entry in config.get("Env") or ())
    return Image(
        reference=reference,
        id=identity,
        digest=_digest(reference, sorted(map(str, found.get("RepoDigests") or ())), identity),
        env=tuple((name, value) for name, _, value in pairs),
        volumes=tuple(sorted(config.get("Volumes") or ())),
    )


def _digest(reference: str, known: list[str], identity: str) -> str:
    """The digest this name has. Raises SandboxError when a pinned name led to an image of another digest."""
    pinned = reference.partition("@")[2]
    digests = {digest: _repository(name) for name, _, digest in (entry.rpartition("@") for entry in known)}
    if pinned and pinned not in digests:
        has = ", ".join(digests) or "none"
        raise SandboxError(f"looking for image {reference}: the engine answered with an image whose digests are {has}")
    if pinned or not digests:
        return pinned or identity
    own = [digest for digest, name in digests.items() if name == _repository(reference)]
    return next(iter(own or digests))


def _repository(reference: str) -> str:
    """The name without tag and digest, as the engines shorten it."""
    name = reference.partition("@")[0]
    host, slash, last = name.rpartition("/")
    return f"{host}{slash}{last.partition(':')[0]}".removeprefix("docker.io/").removeprefix("library/")
