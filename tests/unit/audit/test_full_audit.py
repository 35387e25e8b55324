"""What is around the catalogue: which backends are played on, what a result depends on, what is kept and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from tests.e2e.workbench import need_bubblewrap
from tests.unit.audit.fake_suite import HELD, HOSTILE, MISSING, SUCCEEDS, Ends, attack, catalogue

from securebench.audit.report.model import Mark
from securebench.audit.result import AuditResult, Check, Group
from securebench.audit.suite import attach, full
from securebench.audit.suite.attack import End
from securebench.audit.suite.backends import Offered, find_backends
from securebench.audit.suite.catalogue import Catalogue
from securebench.audit.suite.findings import canary_report, suite_report
from securebench.audit.suite.full import FullAudit, from_json, full_audit, missing_rows
from securebench.audit.suite.host import catalogue_digest, differences, facts_key, host_facts
from securebench.audit.suite.result import Verdict
from securebench.audit.suite.run import Backend
from securebench.cli.audit import command
from securebench.errors import ConfigError, SandboxUnavailable

CANARIES = AuditResult("bubblewrap", "k", 1000.0, 1.0, (Check("a wall", Group.GUARD, True, "stands"),))


@cache
def embedded() -> Backend:
    """Looked at once: its probe starts sandboxes."""
    return anyio.run(find_backends, ["bubblewrap"]).backends[0]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    """The real embedded backend, with canaries that take no time."""
    need_bubblewrap()

    async def canaries(_: Backend) -> AuditResult:
        return CANARIES

    monkeypatch.setattr(full, "_canaries", canaries)
    return embedded()


def played(known: Catalogue, backend: Backend, *only: str) -> FullAudit:
    async def go() -> FullAudit:
        return await full_audit(known, [backend], only=only, at_once=2)

    return anyio.run(go)


def test_everything_held_passes_and_comes_back_from_json(backend: Backend) -> None:
    audit = played(catalogue(*HELD, MISSING), backend)
    assert audit.passed
    assert [(row.attack, row.backend, row.verdict.value) for row in audit.suite.rows] == [
        ("X01/plain", "bubblewrap", "held"),
        ("X01/other", "bubblewrap", "held"),
        ("X01/needs-git", "bubblewrap", "not_played"),
        ("X02/apart", "engine", "held"),
    ]
    back = from_json(json.loads(json.dumps(audit.as_json())))
    assert back.as_json() == audit.as_json() | {
        "canaries": {"bubblewrap": audit.canaries["bubblewrap"].as_json() | {"cached": True}}
    }
    assert missing_rows(audit, catalogue(*HELD, MISSING), [backend]) == []
    assert missing_rows(audit, catalogue(*HELD, SUCCEEDS), [backend]) == ["X01/wins on bubblewrap"]


@pytest.mark.parametrize(
    ("play", "verdict"),
    [
        (Ends(End.REACHED), Verdict.SUCCEEDED),
        (Ends(End.FAULT), Verdict.FAULT),
    ],
)
def test_one_attack_that_did_not_hold_fails_it(backend: Backend, play: Ends, verdict: Verdict) -> None:
    audit = played(catalogue(*HELD, attack("bad", play)), backend)
    assert not audit.passed
    assert [row.verdict for row in audit.suite.failures] == [verdict]


def test_a_backend_on_which_nothing_could_be_played_has_not_passed(backend: Backend) -> None:
    assert not played(catalogue(MISSING, HELD[2]), backend).passed


def test_a_wall_that_is_gone_fails_it_too(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_: Backend) -> AuditResult:
        return replace(CANARIES, checks=(Check("a wall", Group.GUARD, False, "is gone"),))

    monkeypatch.setattr(full, "_canaries", gone)
    audit = played(catalogue(*HELD), backend)
    assert audit.suite.passed
    assert not audit.passed


def test_only_what_was_asked_for_is_played(backend: Backend) -> None:
    known = catalogue(*HELD)
    assert [row.attack for row in played(known, backend, "X02").suite.rows] == ["X02/apart"]
    assert played(known, backend, "X02").canaries == {}
    only = played(known, backend, "canaries")
    assert (only.suite.rows, list(only.canaries), only.passed) == ((), ["bubblewrap"], True)
    with pytest.raises(ConfigError, match="no attack is called Z99"):
        played(known, backend, "Z99")


def test_the_report_tells_what_was_not_played_and_what_is_not_claimed(backend: Backend) -> None:
    known = catalogue(*HELD, MISSING, SUCCEEDS)
    report = suite_report(played(known, backend), known, {"docker": "docker is not installed"})
    assert not report.passed
    assert report.columns == ("bubblewrap", "engine")
    failed = [one for one in report.findings if one.mark is Mark.FAILED]
    assert [(one.rule, one.subject, one.column) for one in failed] == [("X01", "X01/wins", "bubblewrap")]
    assert "audit --full --only X01/wins" in failed[0].fix
    assert "\x1b" not in failed[0].detail
    assert failed[0].place is not None
    sections = {one.title: dict(one.rows) for one in report.sections}
    assert sections["What was not played"] == {
        "docker": "This host does not offer it: docker is not installed",
        "bubblewrap: X01/needs-git": "the image has no git",
        "X03": "Not here: There is no family it applies to.",
    }
    assert sections["What is not claimed"] == {"X01": "That nothing else works."}


def test_the_canaries_alone_are_a_report_too() -> None:
    report = canary_report(CANARIES)
    assert report.passed
    assert report.columns == ("bubblewrap",)
    assert [one.mark for one in report.cell("guard", "bubblewrap")] == [Mark.OK]


def test_what_a_result_depends_on_names_every_part_that_changed(backend: Backend) -> None:
    here = anyio.run(host_facts, catalogue(*HELD), [backend])
    assert set(here) == {"securebench", "catalogue", "python", "kernel", "host", "user", "backend bubblewrap"}
    assert differences(here, here) == []
    assert differences({**here, "backend docker": "20"}, here) == []
    for name in here:
        (line,) = differences({**here, name: "another"}, here)
        assert line.startswith(f"{name}: another there")
    assert differences({}, here)[0].startswith("securebench: not audited there")
    assert facts_key(here) != facts_key({**here, "kernel": "another"})


def test_another_claim_or_another_attack_is_another_catalogue() -> None:
    known = catalogue(*HELD)
    others = [
        catalogue(*HELD[:2]),
        catalogue(*HELD[:2], replace(HELD[2], how="Tries something else.")),
        replace(known, threats=(replace(known.threats[0], claim="It seldom works."), *known.threats[1:])),
    ]
    assert len({catalogue_digest(one) for one in [known, *others]}) == 4
    assert catalogue_digest(known) == catalogue_digest(catalogue(*HELD))


def test_a_backend_that_was_asked_for_and_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no backend is called 'nowhere'; known are bubblewrap, docker, runsc"):
        anyio.run(find_backends, ["nowhere"])
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxUnavailable, match="not installed"):
        anyio.run(find_backends, ["docker"])


def test_a_kept_suite_is_believed_only_with_every_good_sign(backend: Backend, tmp_path: Path) -> None:
    known, place = catalogue(*HELD), tmp_path / "suite-0.json"
    audit = played(known, backend)
    facts = dict(audit.suite.host)
    attach.write_own(place, json.dumps(audit.as_json()), attach.LIFETIME)
    now = audit.suite.time + 10
    assert attach.read_kept(place, facts, now) is not None
    assert attach.read_kept(place, facts, now + attach.LIFETIME) is None, "too old"
    assert attach.read_kept(place, facts, now - 20) is None, "from the future"
    assert attach.read_kept(place, facts | {"kernel": "another"}, now) is None
    assert attach.read_kept(tmp_path / "none", facts, now) is None
    place.chmod(0o644)
    assert attach.read_kept(place, facts, now) is None, "others could have written it"
    for number, broken in enumerate((replace(audit, only=("X",)), played(catalogue(SUCCEEDS), backend), "nonsense")):
        other = tmp_path / f"suite-{number + 1}.json"
        value = broken if isinstance(broken, str) else broken.as_json()
        attach.write_own(other, json.dumps(value), attach.LIFETIME)
        assert attach.read_kept(other, facts, now) is None


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> Iterator[Any]:
    """`cli(catalogue, *arguments)` runs `securebench audit` in this process; exit code and output."""

    async def found(*_: object) -> Offered:
        return Offered((backend,), {})

    monkeypatch.setattr("securebench.audit.suite.backends.find_backends", found)

    def run(known: Catalogue, *arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("securebench.audit.suite.catalogue.load_catalogue", lambda: known)
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return int(done.return_value), done.stdout

    return run


def test_the_command_writes_every_format(cli: Any, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("out.json", "out.sarif", "out.html")]
    code, out = cli(
        catalogue(*HELD, SUCCEEDS), "--full", "--backend", "bubblewrap", "--only", "X",
        "--output", str(files[0]), "--sarif", str(files[1]), "--html", str(files[2]),
    )  # fmt: skip
    assert code == 1
    assert "X Things" in out
    assert "✗ X01/wins on bubblewrap" in out
    assert "NOT PASSED" in out
    assert "\x1b" not in out
    value = json.loads(files[0].read_text())
    assert value["counts"] == {
        "held": 3, "succeeded": 1, "fault": 0, "twin_failed": 0, "broken": 0, "not_played": 0,
    }  # fmt: skip
    results = json.loads(files[1].read_text())["runs"][0]["results"]
    assert [one["kind"] for one in results].count("pass") == 3
    assert "Not passed" in files[2].read_text()
    assert HOSTILE[:20] not in files[2].read_text()


def test_a_place_where_nothing_can_be_signed_is_said_before_anything_is_played(cli: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "none" / "signed.json")
    with pytest.raises(ConfigError, match="cannot be written"):
        cli(catalogue(SUCCEEDS), "--full", "--backend", "no such backend", "--sign", place)


def test_the_command_passes_where_everything_held(cli: Any) -> None:
    code, out = cli(catalogue(*HELD), "--full", "--backend", "bubblewrap", "--only", "X", "--json")
    assert code == 0
    assert json.loads(out)["passed"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "X"),
        ("--sign", "file"),
        ("--full", "--isolation", "docker"),
        ("--full", "pack"),
        ("--full", "--no-run"),
        ("pack", "--image", "python"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(cli: Any, arguments: tuple[str, ...]) -> None:
    import click

    with pytest.raises(click.UsageError):
        cli(catalogue(*HELD), *arguments)


def test_a_file_that_cannot_be_written_is_said_before_anything_is_played(cli: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        cli(catalogue(*HELD), "--full", "--html", str(tmp_path / "none" / "a.html"))
