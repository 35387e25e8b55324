"""`ChangePolicy`: which changes of a candidate count. Pure: gets a delta, decides about every path of it.

Decided on what really changed, under canonical keys (NFC and casefold, no blanks and dots at the end of a name), in
this order:

1. *refused*: a name that git takes for a repository; a name that collides with a protected path without being it; a
   file or link where a protected path, or a directory above one, must be; a link that leads to a protected path;
2. *stripped*: what is protected (hidden tests and the data they read are restored last anyway), what Python would
   load instead of a protected module, and what the pack keeps from the pristine tree (`patch_preserved_paths`);
3. *stripped* unless `allow_sensitive_paths` covers it: what a runner or interpreter loads by itself;
4. *stripped* unless `allow_paths` covers it: tests, pipelines, build files, manifests, caches;
5. *allowed*: everything else.

A refusal is the candidate's failure. Stripping is not: the verifier uses pristine bytes there. A directory follows
what lies in it, so that the allowed part of a delta always fits the pristine tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from securebench.candidates._directory_decisions import settle_directories
from securebench.candidates._protected import Protected
from securebench.candidates.change_decision import ChangedPath, Decision, Outcome, changed_paths
from securebench.candidates.change_rules import Key, is_git_name, restricted_reason, rule_key, sensitive_reason
from securebench.candidates.path_patterns import PathPatterns
from securebench.candidates.runner_sections import FILES, MAX_BYTES, runner_parts_differ
from securebench.candidates.tree import Delta, EntryKind, TreeEntry
from securebench.errors import CandidateError, FailureReason

LISTED = 2000
ReadBlob = Callable[[str, int], bytes]
"""`CandidateStore.read`: a content by digest, of at most so many bytes; ValueError when it has more."""


class PolicyValues(Protocol):
    """What a pack says in `candidate_policy`."""

    @property
    def allow_paths(self) -> tuple[str, ...]: ...

    @property
    def allow_sensitive_paths(self) -> tuple[str, ...]: ...

    @property
    def patch_preserved_paths(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Judgement:
    """What was decided about every changed path, sorted by path."""

    delta: Delta
    decisions: tuple[Decision, ...]

    def of(self, outcome: Outcome) -> tuple[Decision, ...]:
        return tuple(decision for decision in self.decisions if decision.outcome is outcome)

    @cached_property
    def allowed(self) -> Delta:
        """The part of the delta that counts."""
        paths = {decision.path for decision in self.of(Outcome.ALLOWED)}
        return Delta(
            tuple(entry for entry in self.delta.added if entry.path in paths),
            tuple(change for change in self.delta.changed if change.path in paths),
            tuple(entry for entry in self.delta.deleted if entry.path in paths),
        )

    def check(self) -> None:
        """Raises CandidateError naming what is refused and why."""
        refused = self.of(Outcome.REFUSED)
        if refused:
            more = f" (and {len(refused) - 3} more)" if len(refused) > 3 else ""
            named = "; ".join(f"{decision.path} {decision.reason}" for decision in refused[:3])
            raise CandidateError(FailureReason.CANDIDATE_REFUSED, f"refused changes: {named}{more}")

    def as_record(self) -> dict[str, Any]:
        """Every decision, in plain values; of very many the first, with their number."""
        record: dict[str, Any] = {"delta": self.delta.digest, "allowed_delta": self.allowed.digest}
        for outcome in Outcome:
            found = self.of(outcome)
            record[f"{outcome}_count"] = len(found)
            record[str(outcome)] = [decision.as_json() for decision in found[:LISTED]]
        return record


@dataclass(frozen=True)
class ChangePolicy:
    """The policy of one task. Raises ValueError for a pattern that cannot be meant.

    `protected` are the places of hidden tests and of what a test patch touches: files, or directories as a whole."""

    allow_paths: tuple[str, ...] = ()
    allow_sensitive_paths: tuple[str, ...] = ()
    patch_preserved_paths: tuple[str, ...] = ()
    protected: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        _ = self._allowed, self._allowed_sensitive, self._preserved, self._protected

    @classmethod
    def of(cls, policy: PolicyValues | None, protected: Iterable[str] = ()) -> ChangePolicy:
        """From what the pack says; without it, the defaults."""
        if policy is None:
            return cls(protected=frozenset(protected))
        return cls(
            tuple(policy.allow_paths),
            tuple(policy.allow_sensitive_paths),
            tuple(policy.patch_preserved_paths),
            frozenset(protected),
        )

    def judge(self, delta: Delta, read_blob: ReadBlob) -> Judgement:
        """Decide about every path of a delta. `read_blob` is asked for configuration files only."""
        changes = [(change, rule_key(change.path)) for change in changed_paths(delta)]
        added = {key for change, key in changes if change.before is None}
        protected = self._protected.with_links(delta)
        decisions = {
            change.path: Decision(change.path, change.how, *self._decide(change, key, added, protected, read_blob))
            for change, key in changes
        }
        settle_directories([change for change, _ in changes], decisions)
        return Judgement(delta, tuple(decisions[path] for path in sorted(decisions)))

    def _decide(
        self, change: ChangedPath, key: Key, added: set[Key], protected: Protected, read_blob: ReadBlob
    ) -> tuple[Outcome, str]:
        if change.after is not None and any(is_git_name(part) for part in key):
            return Outcome.REFUSED, "is a name that git takes for a repository"
        if (refusal := protected.refusal(change, key)) is not None:
            return Outcome.REFUSED, refusal
        if protected.covers(key):
            return Outcome.STRIPPED, "is protected; its pristine bytes are used"
        if protected.is_shadowed_by(key):
            return Outcome.STRIPPED, "would be loaded instead of a protected file"
        if (pattern := self._preserved.match(change.path)) is not None:
            return Outcome.STRIPPED, f"is kept from the pristine tree ({pattern})"
        if (reason := _sensitive(change, key, added, read_blob)) is not None:
            if (pattern := self._allowed_sensitive.match(change.path)) is not None:
                return Outcome.ALLOWED, f"{reason}; the pack allows it ({pattern})"
            return Outcome.STRIPPED, reason
        if (reason := restricted_reason(key)) is not None:
            pattern = self._allowed.match(change.path) or self._allowed_sensitive.match(change.path)
            if pattern is not None:
                return Outcome.ALLOWED, f"{reason}; the pack allows it ({pattern})"
            return Outcome.STRIPPED, reason
        return Outcome.ALLOWED, "is the candidate's to change"

    @cached_property
    def _allowed(self) -> PathPatterns:
        return PathPatterns.of(self.allow_paths)

    @cached_property
    def _allowed_sensitive(self) -> PathPatterns:
        return PathPatterns.of(self.allow_sensitive_paths)

    @cached_property
    def _preserved(self) -> PathPatterns:
        return PathPatterns.of(self.patch_preserved_paths, canonical=True)

    @cached_property
    def _protected(self) -> Protected:
        return Protected.of(self.protected)


def _sensitive(change: ChangedPath, key: Key, added: set[Key], read_blob: ReadBlob) -> str | None:
    if key[-1] not in FILES:
        return sensitive_reason(key, added)
    try:
        before, after = (_bytes(entry, read_blob) for entry in (change.before, change.after))
    except ValueError:
        return "is too large, or no file, so that its runner configuration cannot be compared"
    if runner_parts_differ(key[-1], before, after):
        return "changes what configures the test runner or its plug-ins"
    return None


def _bytes(entry: TreeEntry | None, read_blob: ReadBlob) -> bytes:
    if entry is None:
        return b""
    if entry.kind is not EntryKind.FILE:
        raise ValueError(f"{entry.path} is no file")
    return read_blob(entry.digest, MAX_BYTES)
