"""Finds the image in an archive: `index.json` of an OCI layout, or the `manifest.json` of `docker save`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from securebench.errors import ConfigError, IntegrityError
from securebench.images._bundle import Bundle, read_document
from securebench.images._documents import (
    ConfigDocument,
    Descriptor,
    Index,
    Manifest,
    Platform,
    parse,
    parse_config,
    parse_saved,
)
from securebench.images._layers import Layer
from securebench.images.budget import ImportLimits
from securebench.images.plan import Layers, Plan
from securebench.images.reference import Reference

_NAME_KEYS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_ATTESTATION = "vnd.docker.reference.type"
_MOST_MANIFESTS = 1000
_MOST_NESTING = 4
_HEX_NAME = re.compile(r"(?:blobs/sha256/|sha256:)?([0-9a-f]{64})(?:\.json)?")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which image of an archive to take."""

    reference: Reference | None
    platform: Platform
    limits: ImportLimits


@dataclass(frozen=True, slots=True)
class _Choice:
    """A manifest, the names it goes by, and the digests of the indexes on the way to it and its own."""

    descriptor: Descriptor
    names: tuple[str, ...]
    digests: tuple[str, ...]


def plan_oci(bundle: Bundle, wanted: Wanted) -> Plan:
    """The image of an OCI layout. Raises ConfigError when there is none or more than one to choose from."""
    top = parse(Index, read_document(bundle, "index.json", wanted.limits.document_bytes), f"{bundle.shown}: index.json")
    choices = list(_expand(bundle, top.manifests, wanted.limits, []))
    choice = _choose(bundle, choices, wanted)
    manifest = parse(Manifest, _blob(bundle, choice.descriptor, wanted.limits), f"{bundle.shown}: manifest")
    config = _blob(bundle, manifest.config, wanted.limits)
    document = parse_config(config, f"{bundle.shown}: config")
    _check_platform(bundle, document.platform, wanted.platform)
    layers = []
    for number, (descriptor, diff_id) in enumerate(_pairs(bundle, manifest.layers, document, wanted.limits), 1):
        blob = bundle.open(_path(descriptor.digest))
        if blob.size != descriptor.size:
            raise IntegrityError(
                f"{bundle.shown}: {_path(descriptor.digest)} has {blob.size} bytes; {descriptor.size} were promised"
            )
        label = f"{bundle.shown}: layer {number} ({descriptor.digest[:19]}…)"
        layers.append(Layer(blob, label, descriptor.digest, diff_id))
    return Plan(Layers(config, tuple(layers)), choice.names, choice.digests)


def _expand(
    bundle: Bundle,
    descriptors: tuple[Descriptor, ...],
    limits: ImportLimits,
    met: list[Descriptor],
    via: tuple[Descriptor, ...] = (),
) -> Iterator[_Choice]:
    """Every manifest that the index leads to. `met` bounds the work: indexes may name each other many times over."""
    met += descriptors
    if len(met) > _MOST_MANIFESTS or len(via) > _MOST_NESTING:
        raise ConfigError(f"{bundle.shown}: its indexes list more than {_MOST_MANIFESTS} manifests or nest too deeply")
    for descriptor in descriptors:
        if _ATTESTATION in descriptor.annotations:
            continue
        path = (*via, descriptor)
        if not descriptor.is_index:
            names = tuple(dict.fromkeys(name for step in path for name in _annotated_names(step)))
            yield _Choice(descriptor, names, tuple(step.digest for step in path))
        elif bundle.has(_path(descriptor.digest)):  # other platforms' parts of a saved index may be left out
            nested = parse(Index, _blob(bundle, descriptor, limits), f"{bundle.shown}: index {descriptor.digest}")
            yield from _expand(bundle, nested.manifests, limits, met, path)


def _choose(bundle: Bundle, choices: list[_Choice], wanted: Wanted) -> _Choice:
    if not choices:
        raise ConfigError(f"{bundle.shown}: index.json names no image")
    fitting = [choice for choice in choices if _fits(choice.descriptor.platform, wanted.platform)]
    if not fitting:
        have = ", ".join(sorted({str(choice.descriptor.platform) for choice in choices}))
        raise ConfigError(f"{bundle.shown}: the image is for {have}; this host is {wanted.platform}")
    named = [choice for choice in fitting if wanted.reference and _matches(choice, wanted.reference)]
    distinct = {choice.descriptor.digest: choice for choice in reversed(named or fitting)}
    if len(distinct) == 1:
        only = next(iter(distinct.values()))
        names = tuple(dict.fromkeys(name for choice in fitting for name in choice.names if _same(choice, only)))
        return _Choice(only.descriptor, names, only.digests)
    raise _ambiguous(bundle, (name for choice in fitting for name in choice.names))


def _same(one: _Choice, other: _Choice) -> bool:
    return one.descriptor.digest == other.descriptor.digest


def _matches(choice: _Choice, reference: Reference) -> bool:
    return reference.key in choice.names or reference.digest in choice.digests


def _ambiguous(bundle: Bundle, names: Iterable[str]) -> ConfigError:
    listed = ", ".join(sorted(set(names))) or "none of them has a name"
    return ConfigError(f"{bundle.shown}: contains several images; choose one with --name ({listed})")


def _fits(platform: Platform | None, host: Platform) -> bool:
    """Whether an image for `platform` runs on `host`; one that does not say is taken at the word of its config."""
    if platform is None or not platform.architecture:
        return True
    return (platform.os or host.os, platform.architecture) == (host.os, host.architecture)


def _check_platform(bundle: Bundle, platform: Platform, host: Platform) -> None:
    if not _fits(platform, host):
        raise ConfigError(f"{bundle.shown}: the image is for {platform}; this host is {host}")


def _annotated_names(descriptor: Descriptor) -> tuple[str, ...]:
    texts = [descriptor.annotations[key] for key in _NAME_KEYS if key in descriptor.annotations]
    return _keys(text for text in texts if ":" in text or "/" in text)  # else it is only a tag


def _keys(texts: Iterable[str]) -> tuple[str, ...]:
    """The usable ones among names somebody wrote into an archive."""
    keys = []
    for text in texts:
        with suppress(ConfigError):
            keys.append(Reference.parse(text).key)
    return tuple(keys)


def _path(digest: str) -> str:
    return digest.replace("sha256:", "blobs/sha256/", 1)


def _blob(bundle: Bundle, descriptor: Descriptor, limits: ImportLimits) -> bytes:
    return read_document(bundle, _path(descriptor.digest), limits.document_bytes, descriptor.digest)


def plan_saved(bundle: Bundle, wanted: Wanted) -> Plan:
    """The image of a `docker save` archive. Raises ConfigError when there is more than one to choose from."""
    where = f"{bundle.shown}: manifest.json"
    images = parse_saved(read_document(bundle, "manifest.json", wanted.limits.document_bytes), where)
    key = wanted.reference.key if wanted.reference else None
    named = [image for image in images if key in _keys(image.repo_tags)] or list(images)
    if len(named) > 1:
        raise _ambiguous(bundle, (name for image in images for name in _keys(image.repo_tags)))
    image = named[0]
    config = read_document(bundle, image.config, wanted.limits.document_bytes, _named_digest(image.config))
    document = parse_config(config, f"{bundle.shown}: config")
    _check_platform(bundle, document.platform, wanted.platform)
    pairs = _pairs(bundle, image.layers, document, wanted.limits)
    layers = tuple(
        # The name of a compressed blob is the digest of its compressed bytes: checked as stored, then decompressed.
        Layer(bundle.open(path), f"{bundle.shown}: layer {number} ({path})", _blob_digest(path), diff_id)
        for number, (path, diff_id) in enumerate(pairs, 1)
    )
    return Plan(Layers(config, layers), _keys(image.repo_tags))


def _named_digest(path: str) -> str | None:
    match = _HEX_NAME.fullmatch(path)
    return f"sha256:{match[1]}" if match else None


def _blob_digest(path: str) -> str | None:
    return _named_digest(path) if path.startswith("blobs/sha256/") else None


def _pairs(
    bundle: Bundle, layers: tuple[T, ...], document: ConfigDocument, limits: ImportLimits
) -> list[tuple[T, str]]:
    """Each layer with the digest its uncompressed bytes must have."""
    if len(layers) > limits.layers:
        raise ConfigError(f"{bundle.shown}: the image has {len(layers)} layers; at most {limits.layers} are allowed")
    if len(layers) != len(document.diff_ids):
        raise IntegrityError(
            f"{bundle.shown}: the manifest lists {len(layers)} layers, the config {len(document.diff_ids)}"
        )
    return list(zip(layers, document.diff_ids, strict=True))
