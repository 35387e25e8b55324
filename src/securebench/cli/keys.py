"""`securebench keys`: make the key that seals your runs, and say whose keys you trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securebench.cli._text import visible
from securebench.errors import ConfigError

if TYPE_CHECKING:
    from securebench.records.keys import KnownKey


@click.group()
def command() -> None:
    """Make the key that seals your runs, and say whose keys you trust.

    A run is sealed with the key named by records.key in the tester YAML or by SECUREBENCH_KEY, else with your only
    key. Without any it is sealed with a key that is forgotten afterwards, which shows that nothing was changed since,
    but not who made the run."""


@command.command("new")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the key as JSON.")
def new(name: str, as_json: bool) -> None:
    """Make a key of your own. There is no copy: keep a backup of its file."""
    from securebench.records.keys import keys_directory, new_key

    directory = keys_directory()
    _show([new_key(name, directory)], directory, as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the keys as JSON.")
def list_(as_json: bool) -> None:
    """List your own keys and those you trust."""
    from securebench.records.keys import keys_directory, known_keys

    directory = keys_directory()
    known = known_keys(directory)
    if not known and not as_json:
        click.echo("no keys; make one: securebench keys new NAME", err=True)
        return
    _show(known, directory, as_json)


@command.command("trust")
@click.argument("source", metavar="FILE|KEY")
@click.option("--name", required=True, help="What to call the key.")
@click.option("--json", "as_json", is_flag=True, help="Print the key as JSON.")
def trust(source: str, name: str, as_json: bool) -> None:
    """Trust somebody's key: a file with their public key (PEM or base64), or its id (ed25519:HEX).

    Get it from them in a way that shows it is theirs, not from beside the run that it sealed."""
    from securebench.records.keys import keys_directory, trust_key

    directory = keys_directory()
    _show([trust_key(name, key_text(source), directory)], directory, as_json)


@command.command("export")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print the key as JSON.")
def export(name: str, as_json: bool) -> None:
    """Print the public half of a key, to publish it."""
    from securebench.records.keys import find_key, keys_directory, public_pem

    key = find_key(name, keys_directory())
    pem = public_pem(key.id).decode()
    click.echo(json.dumps(_described(key) | {"pem": pem}) if as_json else pem, nl=as_json)


def key_text(source: str) -> bytes:
    """What a person named: an id as it is, or what is in a file."""
    from securebench.records.keys import MAX_KEY_FILE, is_key_id

    if is_key_id(source):
        return source.encode()
    try:
        with Path(source).open("rb") as file:
            return file.read(MAX_KEY_FILE)
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}") from error


def _show(keys: list[KnownKey], directory: Path, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"directory": str(directory), "keys": [_described(key) for key in keys]}))
        return
    width = max(len(key.name) for key in keys)
    for key in keys:
        click.echo(f"{visible(key.name):{width}}  {'own    ' if key.own else 'trusted'}  {key.id}")


def _described(key: KnownKey) -> dict[str, Any]:
    return {"name": key.name, "id": key.id, "own": key.own}
