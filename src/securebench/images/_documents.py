"""The JSON documents of image archives, as far as we read them. Open by their specification: other keys are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from securebench import _json
from securebench._json import JsonError
from securebench.errors import ConfigError

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
# Go writes an empty list or map as null.
_Strings = Annotated[tuple[str, ...], BeforeValidator(lambda value: value if value is not None else ())]
_Labels = Annotated[dict[str, str], BeforeValidator(lambda value: value if value is not None else {})]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Platform(_Document):
    os: str = ""
    architecture: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(_Document):
    media_type: str = Field(default="", alias="mediaType")
    digest: Digest
    size: int = Field(ge=0)
    annotations: _Labels = {}
    platform: Platform | None = None

    @property
    def is_index(self) -> bool:
        return self.media_type.endswith((".image.index.v1+json", ".manifest.list.v2+json"))


class Index(_Document):
    """`index.json` of an OCI layout, or a nested index."""

    manifests: tuple[Descriptor, ...]


class Manifest(_Document):
    config: Descriptor
    layers: tuple[Descriptor, ...]


class SavedImage(_Document):
    """One entry of the `manifest.json` that `docker save` writes."""

    config: str = Field(alias="Config")
    repo_tags: _Strings = Field(default=(), alias="RepoTags")
    layers: _Strings = Field(default=(), alias="Layers")


class _Settings(_Document):
    env: _Strings = Field(default=(), alias="Env")
    workdir: str = Field(default="", alias="WorkingDir")
    user: str = Field(default="", alias="User")
    entrypoint: _Strings = Field(default=(), alias="Entrypoint")
    cmd: _Strings = Field(default=(), alias="Cmd")


class _RootFs(_Document):
    diff_ids: tuple[Digest, ...] = ()


class _Config(_Document):
    os: str = ""
    architecture: str = ""
    variant: str = ""
    config: Annotated[_Settings, BeforeValidator(lambda value: value if value is not None else {})] = _Settings()
    rootfs: _RootFs = _RootFs()


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What an image says about running it. `user` is text as the image has it: a name, an id, or with a group."""

    env: tuple[tuple[str, str], ...] = ()
    workdir: str = "/"
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    platform: str = ""


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """A parsed image config: how to run it, where, and what its layers must hash to."""

    settings: ImageConfig
    platform: Platform
    diff_ids: tuple[str, ...]


_Model = TypeVar("_Model", bound=_Document)


def parse(model: type[_Model], data: bytes, shown: str) -> _Model:
    """Raises ConfigError naming the document and the first place that is wrong."""
    try:
        return model.model_validate(_json.loads(data))
    except JsonError as error:
        raise ConfigError(f"{shown}: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{shown}: {_first(error)}") from None


def parse_saved(data: bytes, shown: str) -> tuple[SavedImage, ...]:
    """The images of a `docker save` archive. Raises ConfigError."""
    try:
        value = _json.loads(data)
    except JsonError as error:
        raise ConfigError(f"{shown}: {error}") from None
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{shown}: must be a list of at least one image")
    try:
        return tuple(map(SavedImage.model_validate, value))
    except ValidationError as error:
        raise ConfigError(f"{shown}: {_first(error)}") from None


def parse_config(data: bytes, shown: str) -> ConfigDocument:
    """Raises ConfigError naming the document and what is wrong."""
    document = parse(_Config, data, shown)
    settings = document.config
    pairs = tuple((name, value) for name, _, value in (item.partition("=") for item in settings.env) if name)
    texts = [*settings.env, settings.workdir, settings.user, *settings.entrypoint, *settings.cmd]
    if any("\0" in text for text in texts):
        raise ConfigError(f"{shown}: config: contains a NUL character")
    platform = Platform(os=document.os, architecture=document.architecture, variant=document.variant)
    run = ImageConfig(pairs, settings.workdir or "/", settings.user, settings.entrypoint, settings.cmd, str(platform))
    return ConfigDocument(run, platform, document.rootfs.diff_ids)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
