"""Directories follow what lies in them, so that the allowed part of a delta fits the pristine tree. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from securebench.candidates.change_decision import ChangedPath, Decision, Outcome
from securebench.candidates.tree import EntryKind


def settle_directories(changes: list[ChangedPath], decisions: dict[str, Decision]) -> None:
    """Adjust decisions in place: never a refusal, never from stripped to allowed but for a directory.

    - what was added beneath a file that stays is stripped;
    - a directory that must stay, because something in it stays, is neither deleted nor replaced;
    - a new directory is allowed where something in it is, and stripped where everything in it is."""
    ordered = sorted(changes, key=lambda change: change.path)
    _strip_beneath_kept_files(ordered, decisions)
    kept = _above(c.path for c in ordered if c.after is None and _is(decisions, c, Outcome.STRIPPED))
    for change in ordered:
        leaves = change.kind_before is EntryKind.DIRECTORY and change.kind_after is not EntryKind.DIRECTORY
        if leaves and change.path in kept and _is(decisions, change, Outcome.ALLOWED):
            _set(decisions, change, Outcome.STRIPPED, "cannot go, because something in it stays")
    _settle_new_directories(ordered, decisions)


def _settle_new_directories(ordered: list[ChangedPath], decisions: dict[str, Decision]) -> None:
    there = [change for change in ordered if change.after is not None]
    holding = _above(change.path for change in there)
    new = [change for change in there if change.before is None and change.kind_after is EntryKind.DIRECTORY]
    folders = {change.path for change in new}
    needed = _above(c.path for c in there if c.path not in folders and _is(decisions, c, Outcome.ALLOWED))
    for change in reversed(new):  # what lies deeper is decided first
        if change.path in needed:
            if _is(decisions, change, Outcome.STRIPPED):
                _set(decisions, change, Outcome.ALLOWED, "holds allowed changes")
        elif change.path in holding:
            if _is(decisions, change, Outcome.ALLOWED):
                _set(decisions, change, Outcome.STRIPPED, "holds nothing that is allowed")
        elif _is(decisions, change, Outcome.ALLOWED):
            needed |= _above([change.path])


def _strip_beneath_kept_files(ordered: list[ChangedPath], decisions: dict[str, Decision]) -> None:
    stays: set[str] = set()
    for change in ordered:
        parts = change.path.split("/")
        if any("/".join(parts[:depth]) in stays for depth in range(1, len(parts))):
            if _is(decisions, change, Outcome.ALLOWED):
                _set(decisions, change, Outcome.STRIPPED, "lies beneath a file that stays")
        elif (
            change.before is not None
            and change.kind_before is not EntryKind.DIRECTORY
            and change.kind_after is EntryKind.DIRECTORY
            and not _is(decisions, change, Outcome.ALLOWED)
        ):
            stays.add(change.path)


def _above(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def _is(decisions: dict[str, Decision], change: ChangedPath, outcome: Outcome) -> bool:
    return decisions[change.path].outcome is outcome


def _set(decisions: dict[str, Decision], change: ChangedPath, outcome: Outcome, reason: str) -> None:
    decisions[change.path] = replace(decisions[change.path], outcome=outcome, reason=reason)
