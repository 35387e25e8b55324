"""Guarded Python against its attackers: what each layer stops alone, and that together nothing gets through.

Groups are large because a group shares a container; every attack is a program of its own with a world of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.attacks.python.attack import COLUMNS, Attack, Seen
from tests.attacks.python.container import REPOSITORY, Outcome, play
from tests.attacks.python.levels import blocked_by, kernel_promises, recorded, run_here
from tests.attacks.python.programs import ATTACKS
from tests.docker.engine import IMAGE, docker

GROUPS = {
    "dynamic code and imports": ("dynamic", "imports"),
    "files": ("files",),
    "processes, network and tampering": ("process", "network", "tamper"),
    "resources": ("resources",),
}
LEAST = {"dynamic": 19, "process": 27, "files": 75, "network": 21, "imports": 17, "tamper": 8, "resources": 14}
"""How many of each kind the measurement had that the guarantees were derived from."""


def _group(name: str) -> list[Attack]:
    return [attack for attack in ATTACKS if attack.column in GROUPS[name]]


def _through(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: outcome.note for name, outcome in outcomes.items() if outcome.succeeded}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_on_the_default_level_nothing_gets_through(name: str) -> None:
    assert _through(run_here("default", _group(name))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_with_the_guard_deleted_the_kernel_still_stops_what_it_promises(name: str) -> None:
    promised = [attack for attack in _group(name) if kernel_promises(attack)]
    assert _through(run_here("kernel", promised)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("level", ["guard", "sealed"])
def test_what_a_weaker_level_was_seen_to_stop_it_still_stops(level: str, name: str) -> None:
    known = recorded()
    outcomes = play(level, [attack.id for attack in _group(name)])
    assert not [note for note in outcomes.values() if note.note.startswith("ERROR")], outcomes
    assert {found: note for found, note in _through(outcomes).items() if known[found][level]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_positive_control_without_protection_every_attack_does_what_it_claims(name: str) -> None:
    outcomes = play("control", [attack.id for attack in _group(name)])
    assert {found: outcome.note for found, outcome in outcomes.items() if not outcome.succeeded} == {}


@pytest.mark.slow
def test_in_docker_a_sample_of_every_kind_gets_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    if docker("image", "inspect", IMAGE).returncode:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(f"no Docker, or no image {IMAGE}")
    monkeypatch.setenv("SECUREBENCH_PYTHON_IMAGE", IMAGE)
    sample = [attack for attack in ATTACKS if attack.docker]
    assert {attack.column for attack in sample} == set(COLUMNS)
    assert _through(run_here("default", sample, "docker")) == {}


def test_the_corpus_has_every_kind_and_more_than_was_measured_before() -> None:
    for column, least in LEAST.items():
        assert sum(attack.column == column for attack in ATTACKS) >= least
    assert len(ATTACKS) >= 200
    assert len({attack.id for attack in ATTACKS}) == len({attack.source for attack in ATTACKS}) == len(ATTACKS)


def test_the_table_names_every_attack_and_what_stopped_it() -> None:
    rows = recorded()
    assert set(rows) == {attack.id for attack in ATTACKS}
    assert {blocked_by(row) for row in rows.values()} <= {"guard", "kernel", "both"}
    assert all(row["default"] for row in rows.values())
    by_kernel = [attack.id for attack in ATTACKS if kernel_promises(attack) and not rows[attack.id]["kernel"]]
    assert by_kernel == []


def test_no_attack_counts_on_its_own_word_alone() -> None:
    for attack in ATTACKS:
        assert attack.seen in Seen
        if attack.seen is Seen.LIMIT:
            assert attack.resource


def test_the_stage_refuses_to_run_on_a_host() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.python.stage"],
        input='{"mode": "control", "attacks": [], "workers": 1}',
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 3
    assert "refused" in done.stderr
    assert done.stdout == ""


def test_the_stage_refuses_single_programs_on_a_host_too() -> None:
    from tests.attacks.python.running import run_on_stage

    with pytest.raises(SystemExit):
        run_on_stage("control", None)  # type: ignore[arg-type] — refused before it is looked at
