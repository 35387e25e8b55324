"""Asks a running Docker for an image, through its command line: `docker save` into a file of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from tempfile import TemporaryFile

import anyio

from securebench import _json
from securebench._proc import TOOL_ENV, Process, run_tool, start
from securebench.errors import ConfigError, InfrastructureError, StoreError
from securebench.images.plan import ImportProgress, OnProgress
from securebench.images.reference import Reference, is_digest

_SETTINGS = (
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS_VERIFY",
    "DOCKER_CERT_PATH",
    "XDG_RUNTIME_DIR",
)
_KEPT_STDERR = 64 * 1024
_LOOK_EVERY = 0.2  # seconds between looks at how much has been written
_ASK_SECONDS = 60.0


def save_from_daemon(name: str, target: int, limit: int, progress: OnProgress) -> tuple[str, ...]:
    """Write the image's `docker save` archive to the descriptor `target`; returns the pinned names Docker has for it.

    Must not be called from within an event loop. Raises ConfigError when Docker has no such image or it is larger than
    `limit` bytes, InfrastructureError when Docker cannot be asked."""
    if not is_digest(name):
        Reference.parse(name)  # nothing that could be taken for an option
    return anyio.run(_save, name, target, limit, progress)


async def _save(name: str, target: int, limit: int, progress: OnProgress) -> tuple[str, ...]:
    env = {**TOOL_ENV, **{key: os.environ[key] for key in _SETTINGS if key in os.environ}}
    pinned = await _pinned_names(name, env)
    with TemporaryFile() as stderr:
        process = start(["docker", "save", "--", name], env=env, stdout=target, stderr=stderr.fileno())
        try:
            status = await _watch(process, target, limit, progress)
        finally:
            await process.close()
        stderr.seek(0)
        said = stderr.read(_KEPT_STDERR)
    if status != 0:
        raise _refusal(name, said)
    return pinned


async def _watch(process: Process, target: int, limit: int, progress: OnProgress) -> int:
    while True:
        with anyio.move_on_after(_LOOK_EVERY):
            return await process.wait()
        written = os.fstat(target).st_size
        progress(ImportProgress("docker save", written, None))
        if written > limit:
            raise ConfigError(f"docker save wrote more than {limit} bytes; the image is too large")


async def _pinned_names(name: str, env: Mapping[str, str]) -> tuple[str, ...]:
    argv = ["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", "--", name]
    result = await run_tool(argv, _ASK_SECONDS, env=env)
    if not result.ok:
        raise _refusal(name, result.stderr)
    try:
        listed = _json.loads(result.stdout)
    except _json.JsonError as error:
        raise InfrastructureError(f"docker image inspect {name} gave no JSON: {error}") from error
    texts = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
    return tuple(Reference.parse(text).key for text in texts)


def _refusal(name: str, stderr: bytes) -> ConfigError | InfrastructureError | StoreError:
    said = stderr.decode("utf-8", "replace").strip()[-500:] or "it said nothing"
    if "no such image" in said.lower():
        return ConfigError(f"Docker has no image {name!r}; get it first: docker pull {name}")
    if "no space left" in said.lower():
        return StoreError(f"docker save {name}: {said}")
    return InfrastructureError(
        f"cannot get {name!r} from Docker: {said}\n"
        "Is the daemon running and are you allowed to use it? An archive made elsewhere works too: "
        f"docker save {name} -o image.tar, then securebench image import image.tar"
    )
