"""`securebench report`: what came of runs, as a page, as Markdown, or as the summary of a CI job."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from securebench.reports.content import Content

_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write there instead of to standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "markdown", "github"]),
    help="A page, all of it as Markdown, or a small summary for a CI job. Default: by the file's name, else a page.",
)
@click.option("--scores-only", is_flag=True, help="Leave out what candidates, agents and verifiers wrote.")
@click.option("--json", "as_json", is_flag=True, help="Print what the report is made of as JSON.")
def command(runs: tuple[Path, ...], output: Path | None, form: str | None, scores_only: bool, as_json: bool) -> int:
    """Show what came of runs: scores with intervals, every attempt, failures, cost, integrity, details.

    RUN is a run directory, or a directory with runs in it; several make one report. The page is one file that loads
    nothing and opens from disk. Whether a run is what was sealed is checked on the way, and stands in the report."""
    from securebench.cli._reports import check_destinations, write
    from securebench.cli._runs import read_runs, warn_of_runs
    from securebench.cli._text import visible
    from securebench.reports.content import content_of
    from securebench.reports.words import size_text

    check_destinations(output)
    form = form or _from_ending(output)
    if output is None and form == "html" and not as_json and sys.stdout.isatty():
        raise click.UsageError("a page needs a file: -o report.html; or --format markdown for the terminal")
    read = read_runs(runs)
    warn_of_runs(read)
    contents = [content_of(run) for run in read]
    if as_json:
        click.echo(json.dumps({"runs": [content.as_json() for content in contents]}, indent=2))
    if output is None and as_json:
        return 0
    text = _written(contents, form, not scores_only)
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text)
        if not as_json:
            click.echo(f"{visible(str(output))}: {_named(contents)}, {size_text(len(text.encode()))}")
    return 0


def _from_ending(output: Path | None) -> str:
    if output is None:
        return "html"
    ending = output.suffix.lower()
    if ending == ".pdf":
        raise click.UsageError("a report is no PDF: write -o report.html, and print the page from a browser")
    if ending not in _SUFFIXES:
        raise click.UsageError(f"say which format: name it {', '.join(_SUFFIXES)}, or give --format")
    return _SUFFIXES[ending]


def _written(contents: list[Content], form: str, details: bool) -> str:
    if form == "html":
        from securebench.reports.html.report_page import report_page

        return report_page(contents, details=details)
    from securebench.reports.report_markdown import job_summary, markdown_report

    return markdown_report(contents) if form == "markdown" else job_summary(contents)


def _named(contents: list[Content]) -> str:
    from securebench.cli._text import one_line
    from securebench.reports.words import share_text

    if len(contents) > 1:
        return f"{len(contents)} runs"
    estimate = contents[0].whole.estimate
    return f"{one_line(contents[0].run.label, 80)} {'not judged' if estimate is None else share_text(estimate.mean)}"
