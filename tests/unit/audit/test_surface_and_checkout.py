"""The command line has the documented opt-outs and no other; CI runs what a local run runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from securebench.audit.canaries import GUARD_CANARIES, KERNEL_CANARIES, PROMISES
from securebench.audit.checkout import SOURCE, check_checkout
from securebench.audit.surface import check_surface
from securebench.cli import app

PROGRAMS = SOURCE / "src" / "securebench" / "audit" / "programs"


def _red(rows: list) -> list[str]:
    return [f"{row.id}: {row.detail}" for row in rows if not row.passed]


def test_the_command_line_is_as_documented() -> None:
    assert _red(check_surface(app)) == []


@pytest.fixture
def run_command() -> Iterator[click.Command]:
    command = app.get_command(click.Context(app), "run")
    assert command is not None
    before = list(command.params)
    yield command
    command.params[:] = before


@pytest.mark.parametrize(
    "option",
    [
        click.Option(["--no-guard"], is_flag=True),
        click.Option(["--skip-audit"], is_flag=True),
        click.Option(["--insecure-docker"], is_flag=True),
        click.Option(["--trust"], is_flag=True),
        click.Option(["--fast"], is_flag=True, help="Disables the sandbox."),
        click.Option(["--quick"], is_flag=True, hidden=True),
        click.Option(["--speed"], envvar="SECUREBENCH_SPEED"),
    ],
    ids=lambda option: option.opts[0],
)
def test_an_undocumented_opt_out_is_noticed(run_command: click.Command, option: click.Option) -> None:
    run_command.params.append(option)
    assert _red(check_surface(app))


def test_a_documented_opt_out_that_is_gone_or_on_by_default_is_noticed(run_command: click.Command) -> None:
    unsafe = next(option for option in run_command.params if "--unsafe" in option.opts)
    run_command.params.remove(unsafe)
    assert any("run --unsafe" in row for row in _red(check_surface(app)))
    run_command.params.append(click.Option(["--unsafe"], is_flag=True, default=True))
    assert any("on by default" in row for row in _red(check_surface(app)))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", ".ci/run", "scripts/security_audit.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(SOURCE / name, tmp_path / name)
    (tmp_path / "src" / "securebench").mkdir(parents=True)
    return tmp_path


def test_this_checkout_runs_the_same_checks_in_ci(checkout: Path) -> None:
    assert _red(check_checkout(checkout)) == []
    assert len(check_checkout(checkout)) >= 6


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (".ci/run", " audit\n", "\n"),
        (".ci/run", "make test\n", ""),
        (".ci/run", "set -euo pipefail", ""),
        (".ci/run", "make test", "make test || true"),
        (".ci/run", "export SECUREBENCH_CI=1", ""),
        ("Makefile", "layers test audit", "layers test"),
        ("Makefile", ".venv/bin/securebench audit", "true"),
        ("scripts/security_audit.py", "securebench.cli.audit", "nothing"),
    ],
)
def test_a_check_that_ci_or_a_local_run_leaves_out_is_noticed(checkout: Path, file: str, old: str, new: str) -> None:
    text = (checkout / file).read_text()
    assert old in text
    (checkout / file).write_text(text.replace(old, new))
    assert _red(check_checkout(checkout))


def test_a_checkout_without_ci_has_not_passed_and_an_installed_package_has_none(checkout: Path) -> None:
    (checkout / ".ci" / "run").unlink()
    assert _red(check_checkout(checkout))
    (checkout / "pyproject.toml").unlink()
    assert check_checkout(checkout) == []


def test_every_canary_of_the_table_is_tried_and_every_attempt_is_in_the_table() -> None:
    guard, kernel = ((PROGRAMS / name).read_text() for name in ("guard_canaries.py", "kernel_canaries.py"))
    for name in GUARD_CANARIES:
        assert f'"{name}"' in guard or (name.startswith("import-") and f'"{name[7:]}"' in guard), name
    for name in KERNEL_CANARIES:
        assert f'"{name}":' in kernel, name
    assert len(set(GUARD_CANARIES)) == len(GUARD_CANARIES)
    assert sum(len(promise.kernel) for promise in PROMISES) == len(KERNEL_CANARIES)
