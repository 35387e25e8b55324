"""`securebench image`: bring container images into the store of the embedded sandbox, list and remove them."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from securebench.cli._text import one_line, visible
from securebench.errors import IntegrityError

if TYPE_CHECKING:
    from securebench.images.plan import ImportProgress
    from securebench.images.store import StoredImage

SHORT = len("sha256:") + 12


@click.group()
def command() -> None:
    """Import container images for the embedded sandbox, without Docker.

    A pack that names an image in `environment.image` then runs without a daemon."""


@command.command("import")
@click.argument("source")
@click.option("--name", metavar="REF", help="Name it, such as python:3.11; else the archive's own names are used.")
@click.option("--json", "as_json", is_flag=True, help="Print the image as JSON.")
def import_(source: str, name: str | None, as_json: bool) -> None:
    """Import the image at SOURCE and print its digest.

    \b
    SOURCE is one of
      image.tar               an OCI archive or the output of `docker save`, also compressed
      rootfs.tar              a tarball of a root file system, also compressed
      layout/                 an OCI layout directory
      dir:PATH                a root file system directory
      docker-daemon:NAME      an image of a running Docker
      -                       any of the archives on standard input
    """
    from securebench.images import default_store

    store = default_store()
    progress = _Progress()
    try:
        image = store.import_image(source, name, progress)
    finally:
        progress.done()
    if as_json:
        click.echo(json.dumps(_as_json(image)))
    else:
        click.echo(image.digest)
        click.echo(f"{', '.join(image.references) or 'no name'}: {_contents(image)}", err=True)
    for note in _notes(image):
        click.echo(f"note: {note}", err=True)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the images as JSON.")
@click.option("--verify", is_flag=True, help="Also check every file against what was recorded (exit 1 if one differs).")
def list_(as_json: bool, verify: bool) -> int:
    """List the imported images."""
    from securebench.images import default_store

    store = default_store()
    images = store.list()
    damaged: list[str] = []
    for image in images if verify else []:
        try:
            store.verify(image.digest)
        except IntegrityError as error:
            click.echo(f"error: {visible(str(error))}", err=True)
            damaged.append(image.digest)
    if as_json:
        click.echo(json.dumps({"root": str(store.root), "images": list(map(_as_json, images)), "damaged": damaged}))
    elif not images:
        click.echo("no images; import one: securebench image import SOURCE", err=True)
    else:
        width = max(len(_names(image)) for image in images)
        for image in images:
            click.echo(f"{_names(image):{width}}  {image.digest[:SHORT]}  {_size(image.record.bytes):>8}")
    return 1 if damaged else 0


@command.command("rm")
@click.argument("reference")
def rm(reference: str) -> None:
    """Remove the name REFERENCE, and its image when no other name is left; or an image by its digest.

    A run that is using the image will fail."""
    from securebench.images import default_store

    removed = default_store().remove(reference)
    for name in removed.references:
        click.echo(f"removed {name}")
    if removed.digest:
        click.echo(f"removed {removed.digest}")


def _names(image: StoredImage) -> str:
    return ", ".join(image.references) or "-"


def _contents(image: StoredImage) -> str:
    record = image.record
    return f"{record.files} files, {_size(record.bytes)}, layers: {record.layers}"


def _notes(image: StoredImage) -> list[str]:
    notes = []
    if image.record.skipped:
        notes.append(f"{image.record.skipped} device files or pipes were left out")
    closed = [str(path) for path in image.rootfs.parents if not path.stat().st_mode & 0o001]
    if os.geteuid() == 0 and closed:
        remedy = "set SECUREBENCH_HOME to a directory that all users may enter"
        notes.append(f"sandboxes started by root cannot enter {closed[-1]}; {remedy}")
    return notes


def _as_json(image: StoredImage) -> dict[str, Any]:
    config = image.config
    return {
        "digest": image.digest,
        "references": list(image.references),
        "rootfs": str(image.rootfs),
        "config": {
            "env": dict(config.env),
            "workdir": config.workdir,
            "user": config.user,
            "entrypoint": list(config.entrypoint),
            "cmd": list(config.cmd),
            "platform": config.platform,
        },
        **image.record.model_dump(exclude={"format"}),
    }


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


class _Progress:
    """A line on standard error that is kept up to date on a terminal, or written now and then elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._interval = 0.1 if self._terminal else 5.0
        self._last = time.monotonic()
        self._shown = False

    def __call__(self, event: ImportProgress) -> None:
        now = time.monotonic()
        if now - self._last < self._interval:
            return
        self._last = now
        of = f" of {_size(event.total)}" if event.total else ""
        text = one_line(f"{event.step}: {_size(event.done)}{of}", 78)
        click.echo(f"\r{text:78}" if self._terminal else text, err=True, nl=not self._terminal)
        self._shown = True

    def done(self) -> None:
        if self._terminal and self._shown:
            click.echo(f"\r{'':78}\r", err=True, nl=False)
