"""Reads a compose file: one container that a sandbox can stand for, or why not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from securebench import _yaml
from securebench.importers.base import CannotConvert

_WORDS = """
build image container_name command entrypoint working_dir environment volumes platform stdin_open tty init
hostname restart stop_grace_period stop_signal labels pull_policy deploy
"""
_MEANS_NOTHING = frozenset(_WORDS.split())
"""Keys of a service that change nothing here, or are looked at below. A command only keeps the container alive."""
_OWN_VOLUMES = ("${T_BENCH_", "${HOST_", "/logs")
_OWN_VARIABLES = ("TEST_DIR", "T_BENCH_")


@dataclass(frozen=True, slots=True)
class Service:
    """The one container: its image where it is named, else where its Dockerfile is."""

    image: str | None
    context: str = "."
    dockerfile: str = "Dockerfile"
    workdir: str = ""


def read_compose(data: bytes, name: str) -> Service:
    """Raises CannotConvert."""
    document = _yaml.parse(data, name)
    value = document.value
    if not isinstance(value, dict) or document.problems:
        detail = str(document.problems[0]) if document.problems else "not a mapping"
        raise CannotConvert("its compose file cannot be read", detail)
    services = value.get("services")
    if not isinstance(services, dict) or not services:
        raise CannotConvert("its compose file cannot be read", "it has no services")
    if len(services) > 1:
        raise CannotConvert("needs several containers", ", ".join(map(str, services)))
    service = next(iter(services.values()))
    if not isinstance(service, dict):
        raise CannotConvert("its compose file cannot be read", "its service is not a mapping")
    _check(service)
    build: Any = service.get("build")
    build = {"context": build} if isinstance(build, str) else build if isinstance(build, dict) else {}
    if unknown := sorted(build.keys() - {"context", "dockerfile"}):
        raise CannotConvert("its image is built in a way of its own", f"build.{unknown[0]}")
    image = service.get("image")
    return Service(
        image=image if isinstance(image, str) and "$" not in image and not build else None,
        context=str(build.get("context", ".")),
        dockerfile=str(build.get("dockerfile", "Dockerfile")),
        workdir=str(service.get("working_dir") or ""),
    )


def _check(service: dict[str, Any]) -> None:
    if unknown := sorted(service.keys() - _MEANS_NOTHING):
        raise CannotConvert("its container needs what a sandbox does not give", unknown[0])
    volumes = service.get("volumes") or []
    for volume in volumes if isinstance(volumes, list) else [volumes]:
        if not isinstance(volume, str) or not volume.startswith(_OWN_VOLUMES):
            raise CannotConvert("its container needs what a sandbox does not give", "volumes")
    variables = service.get("environment") or []
    for variable in variables if isinstance(variables, list | dict) else [variables]:
        if not str(variable).startswith(_OWN_VARIABLES):
            raise CannotConvert("its container needs variables", str(variable).partition("=")[0][:60])
    if "devices" in str(service.get("deploy", "")):
        raise CannotConvert("needs a GPU", "deploy.resources")
