"""`securebench init`: a small pack and tester YAML that work as they are."""

from __future__ import annotations

import shlex
from importlib.resources import as_file, files
from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def command(directory: Path) -> None:
    """Write a small working pack and tester YAML into DIRECTORY, to start from."""
    from securebench.cli._text import program
    from securebench.errors import ConfigError

    with as_file(files("securebench") / "data" / "starter") as source:
        sources = sorted(path for path in source.rglob("*") if path.is_file())
        targets = [directory / path.relative_to(source) for path in sources]
        taken = [str(path) for path in targets if path.exists()]
        if taken:
            raise ConfigError(f"{', '.join(taken)} already there; choose an empty directory")
        try:
            for path, target in zip(sources, targets, strict=True):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"{directory}: cannot be written: {error.strerror}") from error
    click.echo(f"Wrote {len(targets)} files to {directory}. Next:")
    click.echo(f"  {program()} validate {shlex.quote(str(directory))}")
    click.echo(f"  {program()} run --config {shlex.quote(str(directory / 'tester.yaml'))}")
