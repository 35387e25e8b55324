"""What stands between two runs and a fair comparison. Said every time; a number that looks comparable is believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from securebench.reports.compare.pairing import Pairing
from securebench.reports.runs import Run
from securebench.reports.words import counted


def run_caveats(run: Run) -> tuple[str, ...]:
    """What is to be known of one run, whatever it is compared with."""
    return tuple(_of_run(run))


def _of_run(run: Run) -> Iterator[str]:
    status, plan, summary = run.seal_status, run.plan, run.summary
    if status == "broken":
        yield broken(run)
    elif status == "unsealed":
        yield "is not sealed: nobody vouches for its records"
    if len(run.rows) < plan.total:
        yield f"is not finished: {plan.total - len(run.rows):,} of {counted(plan.total, 'attempt')} without a record"
    if plan.unsafe:
        yield "went without the audit of the walls (unsafe)"
    if summary.filtered is not None:
        yield f"is not of the whole pack: {summary.filtered}"
    if summary.errors:
        yield f"has {counted(summary.errors, 'attempt')} on which the host failed, not scored"
    if summary.pending:
        yield f"has {counted(summary.pending, 'attempt')} that nobody judged, not scored"


def broken(run: Run) -> str:
    """What is wrong with a run that is not as it was written."""
    seen = run.verification
    return f"is not as it was written: {counted(seen.problems, 'problem')}, the first: {seen.errors[0]}"


def match_caveats(first: Run, second: Run, pairing: Pairing) -> tuple[str, ...]:
    """What differs between two runs besides their scores."""
    return tuple(_of_match(first, second, pairing))


def _of_match(first: Run, second: Run, pairing: Pairing) -> Iterator[str]:
    one, other = first.plan, second.plan
    if first.directory.resolve() == second.directory.resolve() or one.digest == other.digest:
        yield "they are the same run"
    if one.benchmark != other.benchmark:
        names = [f"{plan.benchmark.id} {plan.benchmark.version}" for plan in (one, other)]
        yield f"different benchmarks: {names[0]} and {names[1]}"
    elif one.pack_digest != other.pack_digest:
        yield f"different states of the pack: {_short(one.pack_digest)} and {_short(other.pack_digest)}"
    if (attempts := _attempts(first)) != (others := _attempts(second)):
        yield f"different numbers of attempts at each task: {attempts} and {others}"
    yield from _tasks(pairing)
    if changed := _changes(one.limits, other.limits):
        yield f"different limits: {'; '.join(changed[:8])}"
    yield from _assurance(first, second)
    if one.securebench != other.securebench:
        yield f"different SecureBench: {_short(one.securebench)} and {_short(other.securebench)}"
    if one.host.get("backend") != other.host.get("backend"):
        yield f"different sandboxes: {one.host.get('backend') or 'none'} and {other.host.get('backend') or 'none'}"
    if one.images != other.images and (changed := _changes(one.images, other.images)):
        yield f"different images: {'; '.join(changed[:4])}"


def _attempts(run: Run) -> str:
    """`3`, or `1 to 3` where tasks differ in it."""
    least, most = run.summary.attempts_least, run.summary.attempts
    return str(most) if least is None else f"{least} to {most}"


def _tasks(pairing: Pairing) -> Iterator[str]:
    alone, changed, unjudged = pairing.only_first + pairing.only_second, pairing.changed, pairing.unjudged
    if alone:
        were = "was" if alone == 1 else "were"
        yield (
            f"{counted(alone, 'task')} {were} planned in one of them only ({pairing.only_first} and "
            f"{pairing.only_second})"
        )
    if changed == 1:
        yield "1 task of the same id is of another pack, or has other files, and is left out"
    elif changed:
        yield f"{changed:,} tasks of the same ids are of another pack, or have other files, and are left out"
    if unjudged == 1:
        yield "1 task has no verdict in one of them, and is left out"
    elif unjudged:
        yield f"{unjudged:,} tasks have no verdict in one of them, and are left out"


def _assurance(first: Run, second: Run) -> Iterator[str]:
    levels = [Counter(row.assurance or "unknown" for row in run.rows if row.judged) for run in (first, second)]
    if set(levels[0]) != set(levels[1]):
        words = [", ".join(sorted(level)) or "none" for level in levels]
        yield f"verdicts of different assurance: {words[0]} and {words[1]}"


def _changes(one: Mapping[str, Any], other: Mapping[str, Any], at: str = "") -> list[str]:
    """`sandbox.memory 1g and 2g` for every value that differs."""
    found: list[str] = []
    for key in sorted(one.keys() | other.keys()):
        before, after = one.get(key), other.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            found += _changes(before, after, f"{at}{key}.")
        elif before != after:
            found.append(f"{at}{key} {_value(before)} and {_value(after)}")
    return found


def _value(value: Any) -> str:
    return "none" if value is None else str(value)[:80]


def _short(digest: str) -> str:
    """`sha256:0123456789ab`, also behind a version."""
    before, found, after = digest.rpartition("sha256:")
    return f"{before}{found}{after[:12]}" if found else digest[:80]
