"""`securebench gate`: did a run reach what it had to? For CI, with one line per condition."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from securebench.reports.gate.conditions import Condition, Gate
    from securebench.reports.runs import Run

FORMATS = ("lines", "json", "markdown", "github")
LEVELS = ("pure", "isolated", "shared_process", "judged", "guarded", "unsafe")


def _share(text: str) -> float:
    """`0.6` or `60%`."""
    number = _number(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 <= number <= 1:
        raise click.BadParameter(f"{text!r} is no share: give a number from 0 to 1, or a percentage such as 60%")
    return number


def _dollars(text: str) -> float:
    number = _number(text)
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{text!r} is no amount of US dollars")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--min-score", type=_share, metavar="X", help="The score is at least this: 0.6, or 60%.")
@click.option("--min-lower-bound", type=_share, metavar="X", help="The lower end of its 95 % interval is.")
@click.option(
    "--max-drop-from",
    "drops",
    type=(click.Path(path_type=Path), _share),
    multiple=True,
    metavar="BASE X",
    help="Paired by task, it scores at most this much less than the run BASE; may be repeated.",
)
@click.option("--significant", is_flag=True, help="Allow a larger drop if chance can explain it.")
@click.option("--by-id", is_flag=True, help="Pair tasks of the same id even where their rows differ.")
@click.option("--max-errors", type=click.IntRange(min=0), metavar="N", help="The host failed on at most so many.")
@click.option("--min-tasks", type=click.IntRange(min=1), metavar="N", help="At least so many tasks were judged.")
@click.option("--max-cost", type=_dollars, metavar="USD", help="Its models cost at most this.")
@click.option("--require-sealed", is_flag=True, help="Everything in it is as it was sealed.")
@click.option("--require-trusted", is_flag=True, help="It is sealed by a key you trust (securebench keys trust).")
@click.option("--key", metavar="FILE|KEY", help="Whose seal it must be: a public key, or its id.")
@click.option("--require-complete", is_flag=True, help="Every planned attempt was judged.")
@click.option("--require-whole-pack", is_flag=True, help="No task of the pack was left out.")
@click.option(
    "--require-assurance",
    "levels",
    type=click.Choice(LEVELS),
    multiple=True,
    help="Every verdict was reached so; repeated: in one of these ways.",
)
@click.option("--format", "style", type=click.Choice(FORMATS), default="lines", help="How to print; default: lines.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(run: Path, style: str, as_json: bool, **wanted: Any) -> int:
    """Check what RUN must have reached. Every condition is looked at; exit 1 if one does not hold.

    RUN must always be intact: every planned attempt has a record, and all of it is as it was written. A condition about
    which nothing can be said, such as the cost where a price is not known, does not hold."""
    from securebench.reports.gate.conditions import check_gate

    _check_usage(wanted)
    conditions = _conditions(wanted)
    if not conditions:
        raise click.UsageError("a gate needs a condition, such as --min-score 60% (see --help)")
    gate = check_gate(_one_run(run), conditions)
    _show(gate, "json" if as_json else style)
    return 0 if gate.open else 1


def _check_usage(wanted: dict[str, Any]) -> None:
    for name in ("significant", "by_id"):
        if wanted[name] and not wanted["drops"]:
            raise click.UsageError(f"--{name.replace('_', '-')} is about --max-drop-from, which is not given")


def _conditions(wanted: dict[str, Any]) -> list[Condition]:
    from securebench.cli.keys import key_text
    from securebench.records.keys import parse_public_key
    from securebench.reports.gate import conditions as known

    key = None if wanted["key"] is None else parse_public_key(key_text(wanted["key"]))
    made: list[Condition] = []
    for name, condition in (
        ("min_score", known.MinScore),
        ("min_lower_bound", known.MinLowerBound),
        ("max_errors", known.MaxErrors),
        ("min_tasks", known.MinTasks),
        ("max_cost", known.MaxCost),
    ):
        if wanted[name] is not None:
            made.append(condition(wanted[name]))
    for base, most in wanted["drops"]:
        made.append(known.MaxDrop(_one_run(base), most, wanted["significant"], wanted["by_id"]))
    if wanted["require_sealed"] or wanted["require_trusted"] or key is not None:
        made.append(known.Sealed(key, wanted["require_trusted"]))
    if wanted["require_complete"]:
        made.append(known.Complete())
    if wanted["require_whole_pack"]:
        made.append(known.WholePack())
    if wanted["levels"]:
        made.append(known.Assurance(frozenset(wanted["levels"])))
    return made


def _one_run(path: Path) -> Run:
    from securebench.cli._runs import read_runs
    from securebench.errors import ConfigError

    runs = read_runs([path])
    if len(runs) != 1:
        raise ConfigError(f"{path}: holds {len(runs)} runs; name one of them")
    return runs[0]


def _show(gate: Gate, style: str) -> None:
    from securebench.cli._text import without_orders
    from securebench.reports.gate.outputs import annotate, lines, markdown

    if style == "json":
        click.echo(json.dumps(gate.as_json(), indent=2))
    elif style == "markdown":
        click.echo(markdown(gate), nl=False)
    elif style == "github":
        for line in annotate(gate):
            click.echo(line)
    else:
        for line in lines(gate):
            click.echo(without_orders(line))
