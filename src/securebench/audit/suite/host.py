"""What the result of the suite depends on, in words: an audit is worth something for the host that shows the same.

Which machine and which start of it is there as a digest, so that a published audit tells no serial number."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from securebench._canonical import digest_bytes, digest_value
from securebench.audit.suite.catalogue import ENTRY_POINTS, Catalogue
from securebench.audit.suite.run import Backend
from securebench.records.record import securebench_digest
from securebench.sandboxes.base import HostRoot, ImageRoot, ImageSource

_IDENTITIES = (Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id"))
_PARTS = ("attacks", "plays", "weak", "suite")
_PREFIX = "backend "


async def host_facts(catalogue: Catalogue, backends: Sequence[Backend]) -> dict[str, str]:
    """By name: code, catalogue, machine, and one for each backend with its root."""
    facts = {
        "securebench": securebench_digest(),
        "catalogue": catalogue_digest(catalogue),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "kernel": f"{platform.system()} {platform.release()} {platform.version()} {platform.machine()}",
        "host": _identity(),
        "user": f"{os.geteuid()}:{os.getegid()}",
    }
    for backend in backends:
        facts[f"{_PREFIX}{backend.name}"] = await _described(backend)
    return facts


def differences(audited: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What is other here than where the audit was made, one line each. Backends only the audit has do not count."""
    return [
        f"{name}: {audited.get(name, 'not audited')} there, {value} here"
        for name, value in here.items()
        if audited.get(name) != value
    ]


def facts_key(facts: Mapping[str, str]) -> str:
    """Hex of everything a result depends on."""
    return digest_value(dict(facts)).removeprefix("sha256:")


def catalogue_digest(catalogue: Catalogue) -> str:
    """Of what is claimed and how it is tried: every entry, the files of ours that play them, and the names and
    versions of packages that add to them."""
    entries = [[one.id, one.how, sorted(one.expect), one.isolated] for one in catalogue.attacks]
    claims = [[one.id, one.title, one.claim, one.not_played, one.not_claimed] for one in catalogue.threats]
    value = {"attacks": entries, "claims": claims, "files": _files(), "added": sorted(_added())}
    return f"{len(entries)} attacks {digest_value(value)}"


@cache
def _files() -> str:
    sha, audit = hashlib.sha256(), Path(__file__).parent.parent
    paths = (path for part in _PARTS for path in (audit / part).rglob("*"))
    for path in sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts):
        sha.update(f"{path.relative_to(audit)}\0".encode() + path.read_bytes() + b"\0")
    return sha.hexdigest()


def _added() -> Iterator[str]:
    for point in entry_points(group=ENTRY_POINTS):
        yield f"{point.value} {'' if point.dist is None else f'{point.dist.name} {point.dist.version}'}"


def _identity() -> str:
    text = "\0".join(_read(path) for path in _IDENTITIES) + f"\0{platform.node()}"
    return digest_bytes(b"securebench host v1\0" + text.encode("utf-8", "surrogateescape"))


async def _described(backend: Backend) -> str:
    capabilities = await backend.sandbox.probe()
    words = [f"{key} {value}" for key, value in sorted(capabilities.fingerprint.items())]
    words.append(f"guarantees {'+'.join(sorted(capabilities.guarantees))}")
    return "; ".join([*words, f"root {await _root(backend)}"])


async def _root(backend: Backend) -> str:
    root = backend.root
    if isinstance(root, ImageRoot):
        if isinstance(backend.sandbox, ImageSource):
            return f"{root.reference} {await backend.sandbox.image_digest(root.reference)}"
        return root.reference
    return "the host's programs" if isinstance(root, HostRoot) else str(root.path)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
