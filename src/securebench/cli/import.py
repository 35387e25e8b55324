"""`securebench import`: other people's benchmarks, as packs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from securebench.benchmark_pack import BenchmarkPack
    from securebench.importers.base import Format, Request
    from securebench.importers.importing import Import, ImportReport
    from securebench.importers.sources import Source
    from securebench.records.admissions import Admission

SHOWN = 20
_PATH = click.Path(path_type=Path)


def _listed(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value:
        return
    from securebench.importers.prompts import variants
    from securebench.importers.registry import FORMATS

    for chosen in FORMATS.values():
        click.echo(f"{chosen.name}: {chosen.about}")
        click.echo(f"  prompts: {', '.join(variants(chosen.name, chosen.family))}")
        for name, setting in chosen.settings.items():
            click.echo(f"  --set {name}={setting.default}: {setting.about}")
    ctx.exit()


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for, as it was typed."""

    variant: str
    settings: tuple[str, ...]
    mapping: Path | None
    examples: str | None
    shots: int | None


@click.command("import")
@click.argument("format_", metavar="FORMAT")
@click.argument("source", metavar="SOURCE")
@click.option("-o", "--output", "target", required=True, type=_PATH, metavar="PACK", help="The new directory.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Take these files of SOURCE only; may be repeated.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Look at the first N rows only.")
@click.option(
    "--prompt", "variant", default="default", metavar="VARIANT", help="How rows ask: a variant, or a file .md."
)
@click.option("--examples", metavar="SOURCE", help="Where few-shot prompts take their examples from.")
@click.option("--shots", type=click.IntRange(min=1, max=100), metavar="N", help="How many of them.")
@click.option("--mapping", type=_PATH, metavar="FILE", help="Of the format jsonl: where fields come from.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the format's own.")
@click.option("--image-template", metavar="NAME", help="The image of a row, with words such as {instance_id}.")
@click.option("--repos", metavar="DIRECTORY", help="Git bundles or trees, for rows of swebench without images.")
@click.option("--build", is_flag=True, help="Build the images that have to be built, with docker or podman.")
@click.option("--licence", help="The licence of the source, kept in the pack.")
@click.option("--url", help="Where the source was published, kept in the pack.")
@click.option("--id", "pack_id", metavar="ID", help="The pack's id; default: the format's name.")
@click.option("--check", is_flag=True, help="Try every row: nothing and constants must fail, the reference must pass.")
@click.option("--exclude-failing", "exclude", is_flag=True, help="Check, and leave out rows that failed.")
@click.option("--mutants", type=click.IntRange(min=0), metavar="N", help="Of the check: mutants of each reference.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Of the check: trials side by side.")
@click.option("--sign", "sign", is_flag=True, help="Check, and sign what came out.")
@click.option("--key", metavar="NAME", help="The key to sign with; see securebench keys.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--formats", is_flag=True, is_eager=True, expose_value=False, callback=_listed, help="List the formats.")
def command(
    format_: str,
    source: str,
    target: Path,
    only: tuple[str, ...],
    limit: int | None,
    variant: str,
    examples: str | None,
    shots: int | None,
    mapping: Path | None,
    settings: tuple[str, ...],
    image_template: str | None,
    repos: str | None,
    build: bool,
    licence: str | None,
    url: str | None,
    pack_id: str | None,
    check: bool,
    exclude: bool,
    mutants: int | None,
    workers: int | None,
    sign: bool,
    key: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write SOURCE, which is of FORMAT, as a pack into the new directory PACK.

    SOURCE is a file, a directory, an archive (.zip, .tar.*), or a data set of a hub at a commit
    (hf:OWNER/NAME@COMMIT). The same source gives the same bytes. Rows that cannot be converted are listed with the
    reason and left out (exit 1); nothing is guessed. `--formats` lists the formats, their prompts and settings."""
    from securebench.importers.importing import Import, Naming, new_directory
    from securebench.importers.registry import find_format
    from securebench.importers.sources import open_source

    trial = _Check(check or exclude or sign, exclude, mutants, workers, sign, key)
    trial.require()
    chosen = find_format(format_)
    said = {"image-template": image_template, "repos": repos, "build": "yes" if build else None}
    settings += tuple(f"{name}={value}" for name, value in said.items() if value is not None)
    wish = _Wish(variant, settings, mapping, examples, shots)
    with _request(chosen, wish) as request, open_source(source, only) as opened, new_directory(target) as directory:
        job = Import(chosen, opened, request, Naming(pack_id, licence, url), limit)
        pack, report = job.write(directory)
        admission = None
        if trial.wanted:
            pack, report, admission = _checked(job, directory, pack, report, trial, quiet or as_json)
    if as_json:
        click.echo(json.dumps(_report(target, pack, report, admission)))
    else:
        _print(target, pack, report)
        if admission is not None:
            _print_admission(admission, exclude)
        _print_images(pack)
        if not quiet:
            _print_next(target, checked=admission is not None)
    if admission is not None and any(row.host_errors for row in admission.rows):
        return 3
    return 1 if report.missing or (admission is not None and admission.failing) else 0


@dataclass(frozen=True, slots=True)
class _Check:
    """What the check was told."""

    wanted: bool
    exclude: bool
    mutants: int | None
    workers: int | None
    sign: bool
    key: str | None

    def require(self) -> None:
        given = {"--mutants": self.mutants is not None, "--workers": self.workers is not None}
        wrong = [name for name, value in given.items() if value and not self.wanted]
        if wrong:
            raise click.UsageError(f"{', '.join(wrong)} is of the check; add --check")
        if self.key is not None and not self.sign:
            raise click.UsageError("--key is the key to sign with; add --sign")


def _checked(
    job: Import, directory: Path, pack: BenchmarkPack, report: ImportReport, wish: _Check, quiet: bool
) -> tuple[BenchmarkPack, ImportReport, Admission]:
    """Try every row, leave out what failed where that was asked for, and keep what came out beside the pack."""
    from securebench.cli._suite_progress import progress
    from securebench.importers.admission import MUTANTS, admit, without_failing
    from securebench.records.admissions import write_admission
    from securebench.records.keys import load_signing_key

    key = load_signing_key(wish.key) if wish.sign else None  # a wrong one is said before anything is tried
    with progress(quiet) as tell:
        admission = admit(
            directory,
            mutants=MUTANTS if wish.mutants is None else wish.mutants,
            workers=wish.workers,
            on_row=lambda done, total: tell("trying rows", done, total, 0),
        )
    if wish.exclude and admission.failing:
        pack, report, admission = without_failing(job, directory, admission)
    if key is not None and key.ephemeral:
        click.echo("signed with a key that is forgotten now; `securebench keys new NAME` makes one", err=True)
    write_admission(directory, admission, key)
    return pack, report, admission


@contextmanager
def _request(chosen: Format, wish: _Wish) -> Iterator[Request]:
    """Raises ConfigError for what a format does not know."""
    from securebench.importers.base import Request
    from securebench.importers.prompts import load_prompt, own_prompt
    from securebench.importers.registry import check_settings
    from securebench.importers.sources import open_source

    if wish.variant.endswith(".md"):
        prompt = own_prompt(_bytes(Path(wish.variant)), wish.variant)
    else:
        prompt = load_prompt(chosen.name, wish.variant, chosen.family)
    if (wish.examples or wish.shots) and not prompt.wants_examples:
        raise click.UsageError(f"the prompt {wish.variant} shows no examples; choose another with --prompt")
    with ExitStack() as stack:
        examples: Source | None = stack.enter_context(open_source(wish.examples)) if wish.examples else None
        yield Request(
            prompt=prompt,
            settings=check_settings(chosen, _settings(wish.settings)),
            examples=examples,
            shots=wish.shots,
            mapping=(str(wish.mapping), _bytes(wish.mapping)) if wish.mapping else None,
        )


def _bytes(path: Path) -> bytes:
    """A small file that the operator named. Raises ConfigError."""
    from securebench._fs import open_named
    from securebench.errors import ConfigError, os_reason

    try:
        with open_named(path) as file:
            return file.read(2**20)
    except OSError as error:
        raise ConfigError(f"{path}: {os_reason(error)}") from error


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--set takes NAME=VALUE, not {text!r}")
        found[name] = value
    return found


def _report(target: Path, pack: BenchmarkPack, report: ImportReport, admission: Admission | None) -> dict[str, Any]:
    note = pack.manifest.source
    source = note.model_dump(mode="json", exclude_none=True) if note else {}
    value = {"pack": str(target), "id": pack.manifest.id, "digest": pack.digest, "source": source, **report.as_json()}
    return value if admission is None else value | {"admission": admission.model_dump(mode="json")}


def _print(target: Path, pack: BenchmarkPack, report: ImportReport) -> None:
    from securebench.cli._text import visible
    from securebench.importers.importing import rows, together

    click.echo(f"{target}: {report.written} of {report.rows} rows")
    click.echo(f"digest {pack.digest}")
    left_out, notes = together(report.left_out), together(report.notes)
    for line, _ in left_out[:SHOWN]:
        click.echo(visible(f"left out: {line}"))
    if more := report.missing - sum(count for _, count in left_out[:SHOWN]):
        click.echo(f"… and {more} more (--json shows them)")
    for reason, count in report.reasons.most_common() if len(left_out) > len(report.reasons) else ():
        click.echo(visible(f"{rows(count)} left out: {reason}"))
    for line, _ in notes[:SHOWN]:
        click.echo(visible(f"note: {line}"))
    if more := sum(count for _, count in notes[SHOWN:]):
        click.echo(f"… and {more} more notes (--json shows them)")
    if report.renamed:
        click.echo(f"{rows(report.renamed)} with another id than in the source, to be safe and unique")
    if pack.manifest.source is not None and pack.manifest.source.licence is None:
        click.echo("the licence of the source is not known; keep it in the pack with --licence", err=True)


def _print_images(pack: BenchmarkPack) -> None:
    """Say which images the rows need that were not brought in here."""
    from securebench.cli._text import program, visible
    from securebench.errors import SecureBenchError
    from securebench.images import resolve_root

    missing = []
    for image in sorted({entry.image for entry in pack.entries if entry.image}):
        try:
            resolve_root(image)
        except SecureBenchError:
            missing.append(image)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        how = f"{program()} image import docker-daemon:{missing[0]}"
        click.echo(
            visible(
                f"note: needs the image {missing[0]}{more}; unless Docker has it or can pull it, bring it in: {how}"
            )
        )


def _print_next(target: Path, checked: bool) -> None:
    """The commands that come next, for people."""
    from securebench.cli._text import program

    pack = shlex.quote(str(target))
    click.echo("Next:", err=True)
    if not checked:
        click.echo(f"  {program()} validate {pack}", err=True)
    click.echo(f"  {program()} grade {pack} SAMPLES.jsonl", err=True)


def _print_admission(admission: Admission, excluded: bool) -> None:
    from securebench.cli._text import visible
    from securebench.importers.admission import faults
    from securebench.importers.importing import rows

    counts = admission.counts
    click.echo(f"{counts['admitted']} of {counts['rows']} rows admitted")
    if tried := counts["references_passed"] + counts["references_failed"]:
        click.echo(f"references: {counts['references_passed']} of {tried} pass")
    if counts["without_reference"]:
        click.echo(f"{rows(counts['without_reference'])} without a reference, so nothing shows that a solution exists")
    if counts["mutants"]:
        click.echo(f"mutants of references: {counts['mutants_noticed']} of {counts['mutants']} are noticed")
    if admission.constants:
        best = sorted(admission.constants.items(), key=lambda one: -one[1])[:3]
        click.echo("best constant guesses: " + ", ".join(f"{name!r} {share:.0%}" for name, share in best))
    failing = [row for row in admission.rows if not row.admitted]
    for row in failing[:SHOWN]:
        mark = "excluded" if row.excluded else "not admitted"
        click.echo(visible(f"{mark}: task {row.id}: {'; '.join(faults(row))}"))
    if len(failing) > SHOWN:
        click.echo(f"… and {len(failing) - SHOWN} more (admission.json lists them)")
    if admission.failing and not excluded:
        click.echo("--exclude-failing makes the pack without them")
