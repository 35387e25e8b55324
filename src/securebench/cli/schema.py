"""`securebench schema`: the JSON Schemas, made from the models that check the files."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("what", type=click.Choice(["manifest", "row", "tester"]))
def command(what: str) -> None:
    """Print the JSON Schema of a manifest, a row of tasks.jsonl, or a tester YAML.

    Editors that know JSON Schema can use it to complete and check your files."""
    from securebench.pack_schema import MANIFEST, row_json_schema
    from securebench.tester_config import TESTER

    schema = row_json_schema() if what == "row" else (MANIFEST if what == "manifest" else TESTER).json_schema
    click.echo(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2))
