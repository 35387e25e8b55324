"""`securebench verify`: is a run what was sealed, and what does that not prove?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securebench.cli._text import visible

if TYPE_CHECKING:
    from securebench.evidence.verify import Verification

SHOWN = 20


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--key", "key", metavar="FILE|KEY", help="Whose seal it must be: a public key, or its id.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(runs: tuple[Path, ...], key: str | None, as_json: bool) -> int:
    """Check run directories, or every run beneath a directory, offline, from their files alone.

    Checked are the plan, every record and its place in the chain, every stored candidate and piece of evidence, the
    summary (counted again), checkpoints, seal and key. Exit 1 when anything is off, with file and line."""
    from securebench.cli._trust import trusted_keys
    from securebench.cli.keys import key_text
    from securebench.evidence.verify import find_runs, verify_run
    from securebench.records.keys import parse_public_key

    expected = None if key is None else parse_public_key(key_text(key))
    trusted = trusted_keys()
    found = list(dict.fromkeys(run for path in runs for run in find_runs(path)))
    results = []
    for run in found:
        results.append(verify_run(run, trusted, expected))
        if not as_json:
            _print(results[-1])
    ok = all(result.ok for result in results)
    if as_json:
        click.echo(json.dumps({"ok": ok, "runs": [result.as_json() for result in results]}))
    elif len(results) > 1:
        click.echo(f"{sum(result.ok for result in results)} of {len(results)} runs verified")
    return 0 if ok else 1


def _print(result: Verification) -> None:
    errors = result.errors
    count = result.problems
    state = "verified" if result.ok else f"NOT VERIFIED: {count} problem{'s' if count > 1 else ''}"
    click.echo(f"{visible(str(result.directory))}: {state}")
    for name, text in _rows(result):
        click.echo(f"  {name:10} {visible(text, keep='')}")
    for title, lines in (
        ("problems", [str(finding) for finding in errors]),
        ("notes", [str(finding) for finding in result.notes]),
    ):
        _list(title, lines)
    _list(
        "this does not prove" if result.ok else "and even without these problems it would not prove", result.not_proven
    )


def _rows(result: Verification) -> list[tuple[str, str]]:
    facts = result.facts
    if not facts:
        return []
    benchmark = facts["benchmark"]
    score = "none" if facts["score"] is None else f"{facts['score']:.4g}"
    filtered = ", filtered" if facts["filtered"] else ""
    counts = ", ".join(f"{facts[name]} {name}" for name in ("passed", "failed", "pending", "errors") if facts[name])
    return [
        (
            "run",
            f"{facts['run_id']}, {facts['status']}" + (f", {facts['finished_at']}" if facts["finished_at"] else ""),
        ),
        ("benchmark", f"{benchmark['id']} {benchmark['version']}{filtered}, {benchmark['digest']}"),
        ("harness", str(facts["harness"])),
        ("attempts", f"{facts['recorded']} of {facts['planned']}: {counts or 'none'}; score {score}"),
        ("sealed by", _signer(result)),
        *(("audit", _audit(one)) for one in facts["audits"]),
    ]


def _signer(result: Verification) -> str:
    key = result.key
    if key is None:
        return "nobody"
    return f"{key.name or key.id} ({'' if key.name is None else key.id + ', '}{key.standing})"


def _audit(audit: Mapping[str, Any]) -> str:
    words = f"{audit['held']} of {audit['attacks']} attacks held on {audit['on']}, {audit['at']}"
    return words if audit["vouched"] else f"{words}, by a key you do not know"


def _list(title: str, lines: list[str] | tuple[str, ...]) -> None:
    if not lines:
        return
    click.echo(f"  {title}:")
    for line in lines[:SHOWN]:
        click.echo(f"    {visible(line, keep='')}")
    if len(lines) > SHOWN:
        click.echo(f"    … and {len(lines) - SHOWN} more (--json shows them)")
