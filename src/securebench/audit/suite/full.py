"""The whole audit of a host: the canaries of every backend, then every attack of the catalogue on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from securebench._text import visible
from securebench.audit.checkout import check_checkout
from securebench.audit.result import EVERYTHING, AuditResult, Check, Group
from securebench.audit.result import from_json as canaries_from_json
from securebench.audit.run import audit_level
from securebench.audit.shell import audit_shell
from securebench.audit.suite.attack import Attack
from securebench.audit.suite.catalogue import Catalogue
from securebench.audit.suite.host import host_facts
from securebench.audit.suite.result import NO_BACKEND, Row, SuiteResult
from securebench.audit.suite.result import from_json as suite_from_json
from securebench.audit.suite.run import MOST_DETAIL, Backend, run_suite
from securebench.execution.isolation import BUBBLEWRAP, DOCKER, Wish, select_isolation
from securebench.sandboxes.base import ImageRoot

if TYPE_CHECKING:
    import click

CANARIES = "canaries"
"""What `only` calls them."""
_ONCE = frozenset({Group.SURFACE, Group.CHECKOUT})
OnStep = Callable[[str, int, int, Row | None], None]
"""Called with what is being done, how many rows there are and will be, and the last one."""


@dataclass(frozen=True, slots=True)
class FullAudit:
    """`canaries` by column. `only` is what was asked for, empty where it was everything."""

    suite: SuiteResult
    canaries: Mapping[str, AuditResult]
    only: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whatever was looked at stood, and something was looked at."""
        suite = [self.suite.passed] if self.suite.rows else []
        parts = [*suite, *(result.passed for result in self.canaries.values())]
        return bool(parts) and all(parts)

    @property
    def columns(self) -> tuple[str, ...]:
        names = dict.fromkeys([*self.canaries, *(row.backend for row in self.suite.rows)])
        return tuple(sorted(names, key=lambda name: name == NO_BACKEND))  # what meets no backend last

    def as_json(self) -> dict[str, Any]:
        return {
            **self.suite.as_json(),
            "passed": self.passed,
            "only": list(self.only),
            "canaries": {name: result.as_json() for name, result in self.canaries.items()},
        }


def from_json(data: Mapping[str, Any]) -> FullAudit:
    """The inverse of `as_json`. Raises KeyError, TypeError, ValueError or AttributeError for anything else."""
    canaries = {str(name): canaries_from_json(value) for name, value in data["canaries"].items()}
    return FullAudit(suite_from_json(data), canaries, tuple(map(str, data["only"])))


async def full_audit(
    catalogue: Catalogue,
    backends: Sequence[Backend],
    *,
    only: Sequence[str] = (),
    at_once: int,
    app: click.Group | None = None,
    on_step: OnStep | None = None,
) -> FullAudit:
    """Look at and play everything, or what `only` names (class, threat, attack, `canaries`). Raises ConfigError,
    SandboxUnavailable; a wall that is missing and an attack that succeeds are rows."""
    step = on_step or _silent
    attacks = catalogue.chosen([word for word in only if word != CANARIES]) if set(only) != {CANARIES} else ()
    total = len(_planned(attacks, backends))
    canaries: dict[str, AuditResult] = {}
    if not only or CANARIES in only:
        for backend in backends:
            step(f"canaries on {backend.name}", 0, total, None)
            canaries[backend.name] = _bounded(await _canaries(backend))
        if app is not None:
            canaries[NO_BACKEND] = _engine(next(iter(canaries.values())), app)
    done = 0

    def on_row(row: Row) -> None:
        nonlocal done
        done += 1
        step(f"{row.attack} on {row.backend}", done, total, row)

    host = await host_facts(catalogue, backends)
    suite = await run_suite(catalogue, attacks, backends, host=host, at_once=at_once, on_row=on_row)
    return FullAudit(suite, canaries, tuple(only))


def _planned(attacks: Sequence[Attack], backends: Sequence[Backend]) -> list[tuple[str, str]]:
    isolated = [(attack.id, backend.name) for backend in backends for attack in attacks if attack.isolated]
    return isolated + [(attack.id, NO_BACKEND) for attack in attacks if not attack.isolated]


def missing_rows(audit: FullAudit, catalogue: Catalogue, backends: Sequence[Backend]) -> list[str]:
    """Canaries and attacks of the catalogue that it has nothing of on these backends, by name; nothing where it was a
    full one."""
    rows = {(row.attack, row.backend) for row in audit.suite.rows}
    return [f"{CANARIES} on {backend.name}" for backend in backends if backend.name not in audit.canaries] + [
        f"{attack} on {column}"
        for attack, column in _planned(catalogue.attacks, backends)
        if (attack, column) not in rows
    ]


async def _canaries(backend: Backend) -> AuditResult:
    """All of a backend of ours; of another one the walls as they are seen from a shell."""
    if backend.name in {BUBBLEWRAP, DOCKER}:
        wish = Wish(image=backend.root.reference) if isinstance(backend.root, ImageRoot) else Wish()
        return await audit_level(await select_isolation(backend.name, wish), groups=EVERYTHING - _ONCE)
    return await audit_shell(backend.name, backend.sandbox, [backend.root])


def _bounded(result: AuditResult) -> AuditResult:
    """What a canary says can be a program's own words."""
    checks = [replace(check, detail=visible(check.detail)[:MOST_DETAIL]) for check in result.checks]
    return replace(result, checks=tuple(checks))


def _engine(like: AuditResult, app: click.Group) -> AuditResult:
    """What is the same on every backend: the command line and, in a checkout, CI."""
    from securebench.audit.surface import check_surface

    rows: list[Check] = [*check_surface(app), *check_checkout()]
    return replace(like, level=NO_BACKEND, seconds=0.0, checks=tuple(rows))


def _silent(*_: object) -> None:
    return
