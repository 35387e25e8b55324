"""What a suite reported, read as hostile bytes: bounded, total, and nothing in it is believed alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from securebench import _json

PHASES = frozenset({"setup", "call", "teardown"})
OUTCOMES = frozenset({"passed", "failed", "skipped", "xfailed"})


@dataclass(frozen=True, slots=True)
class Report:
    """Test ids with what was said of each; `ended` only where the runner said so itself, once and last."""

    outcomes: Mapping[str, str]
    repeated: frozenset[str]  # ids of which one phase was reported twice
    ended: bool
    odd_lines: int  # lines that no runner of ours writes

    def passed(self, test: str) -> bool:
        return self.outcomes.get(test) == "passed" and test not in self.repeated


def read_report(data: bytes) -> Report:
    """Never raises. A test passed if every phase of it that was reported passed, and its call was among them."""
    phases: dict[str, dict[str, str]] = {}
    repeated: set[str] = set()
    ended, odd = False, 0
    for line in data.splitlines():
        match _event(line):
            case {"event": "test", "id": str(test), "when": str(when), "outcome": str(outcome)} if (
                not ended and when in PHASES and outcome in OUTCOMES
            ):
                seen = phases.setdefault(test, {})
                if when in seen:
                    repeated.add(test)
                seen[when] = outcome
            case {"event": "collected"} if not ended:
                pass
            case {"event": "end"} if not ended:
                ended = True
            case _:
                odd += 1
    outcomes = {test: _together(seen.values(), "call" in seen) for test, seen in phases.items()}
    return Report(MappingProxyType(outcomes), frozenset(repeated), ended and odd == 0, odd)


def _event(line: bytes) -> object:
    try:
        return _json.loads(line)
    except ValueError:
        return None


def _together(outcomes: Iterable[str], called: bool) -> str:
    seen = set(outcomes)
    if "failed" in seen:
        return "failed"
    if seen == {"passed"}:
        return "passed" if called else "failed"
    return "skipped" if "skipped" in seen else "xfailed"
