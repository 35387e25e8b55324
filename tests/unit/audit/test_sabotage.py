"""Breaking any single wall turns the audit red. The unbroken control is `tests/e2e/test_audit_command.py`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.e2e.workbench import need_bubblewrap
from tests.unit.audit.sabotage import BACKEND, GUARD, SEAL, Patched, Rewritten

from securebench.audit.result import AuditResult, Group
from securebench.audit.run import audit_level
from securebench.execution import guard_files
from securebench.sandboxes import _seccomp

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def bubblewrap() -> Iterator[None]:
    need_bubblewrap()
    _seccomp.build_filter.cache_clear()
    yield
    _seccomp.build_filter.cache_clear()


def _audited(group: Group) -> AuditResult:
    return anyio.run(partial(audit_level, "bubblewrap", groups=frozenset({group})))


def _red(result: AuditResult) -> list[str]:
    return [f"{check.id}: {check.detail}" for check in result.failures]


@pytest.fixture
def guard_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The guard's files to be broken, in the place of the real ones."""
    copy = tmp_path / "guard"
    shutil.copytree(guard_files.GUARD_SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    prepared: list[Path] = []
    monkeypatch.setattr(guard_files, "GUARD_SOURCE", copy)
    monkeypatch.setattr(guard_files, "_made", prepared)
    monkeypatch.setattr(guard_files, "_compiled_by", set())
    yield copy
    for made in prepared:
        shutil.rmtree(made, ignore_errors=True)


def _break(copy: Path, wall: Rewritten) -> None:
    """In the file it is expected in, or wherever it was moved to."""
    places = [path for path in (copy / wall.file, *sorted(copy.glob("*.py"))) if wall.old in path.read_text()]
    assert places, f"the guard does not say {wall.old!r} any more"
    places[0].write_text(places[0].read_text().replace(wall.old, wall.new, 1))


@pytest.mark.parametrize("name", [*GUARD, *SEAL])
def test_a_broken_guard_or_seal_is_noticed(guard_copy: Path, name: str) -> None:
    wall = GUARD.get(name) or SEAL[name]
    _break(guard_copy, wall)
    assert _red(_audited(wall.group))


@pytest.mark.parametrize("name", BACKEND)
def test_a_broken_backend_or_limit_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    wall: Patched = BACKEND[name]
    wall.apply(monkeypatch)
    _seccomp.build_filter.cache_clear()
    assert _red(_audited(wall.group))


def test_the_unbroken_copy_is_not_red(guard_copy: Path) -> None:
    for group in (Group.GUARD, Group.SEAL):
        assert _red(_audited(group)) == []


def test_a_canary_that_says_nothing_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    from securebench.audit import children

    monkeypatch.setattr(children, "_source", lambda _: b"print('all is well')")
    for group in (Group.GUARD, Group.SEAL, Group.BACKEND, Group.KERNEL):
        result = _audited(group)
        assert len(result.failures) >= len(result.checks) - 4, group


def test_an_isolation_that_cannot_start_has_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    from securebench.audit import children
    from securebench.errors import SandboxError

    async def broken(*_: object, **__: object) -> None:
        raise SandboxError("no sandbox today")

    monkeypatch.setattr(children, "run_python", broken)
    result = _audited(Group.GUARD)
    assert not result.passed
    assert "no sandbox today" in result.failures[0].detail


def test_at_least_twenty_four_walls_are_broken_one_by_one() -> None:
    assert len(GUARD) + len(SEAL) + len(BACKEND) >= 24
