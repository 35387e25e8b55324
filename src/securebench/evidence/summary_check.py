"""`summary.json` against the records: everything in it that can be counted again is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from securebench import _json
from securebench._canonical import digest_bytes
from securebench.errors import IntegrityError, StoreError
from securebench.evidence.findings import Findings
from securebench.records._durable import read_file
from securebench.records.plan import Plan
from securebench.records.seal import MAX_SUMMARY
from securebench.records.summary import SUMMARY_FILE, VOLATILE, RunPlan, Tally

_LARGEST = 2**60  # beyond it there are integers that are no floating-point numbers, and no sums of ours


def new_tally(directory: Path, plan: Plan) -> Tally:
    return Tally(RunPlan.of(plan, directory))


def check_summary(directory: Path, tally: Tally, interrupted: bool | None, findings: Findings) -> str | None:
    """The sha256 of `summary.json`, None where there is none to read. A seal that says `complete` (`interrupted` is
    False) leaves nothing to be interrupted; otherwise a run may also have ended with faults of the host."""
    try:
        data = read_file(directory / SUMMARY_FILE, MAX_SUMMARY)
    except FileNotFoundError:
        findings.error(SUMMARY_FILE, 0, "there is no summary")
        return None
    except (IntegrityError, StoreError) as error:
        findings.raised(SUMMARY_FILE, 0, error)
        return None
    try:
        found = _json.loads(data)
    except _json.JsonError as error:
        findings.error(SUMMARY_FILE, 0, str(error))
        found = None
    if isinstance(found, dict):
        tally.interrupted = interrupted is not False and bool(found.get("interrupted"))
        expected: Any = _json.loads(_json.dumps(tally.summary(0.0).as_json()))
        if _other_method(found.get("interval"), expected["interval"]):
            found["interval"] = expected["interval"]
            findings.note(SUMMARY_FILE, 0, "its interval was computed by another method and is not counted again")
        for message in _differences("", found, expected):
            findings.error(SUMMARY_FILE, 0, message)
    elif found is not None:
        findings.error(SUMMARY_FILE, 0, "not a summary: expected an object")
    return digest_bytes(data).removeprefix("sha256:")


def _other_method(found: Any, expected: Any) -> bool:
    """Of an older or newer SecureBench: the score is the same, how sure it is was computed otherwise."""
    both = isinstance(found, dict) and isinstance(expected, dict)
    return both and found.get("method") != expected["method"]


def _differences(at: str, found: Any, expected: Any) -> list[str]:
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = (expected.keys() | found.keys()) - (VOLATILE if not at else set())
        return [
            line
            for key in sorted(keys)
            for line in _differences(f"{at}.{key}" if at else key, found.get(key), expected.get(key))
        ]
    # Rounded sums of times can fall on either side.
    if _same(found, expected, 0.0011 if at.endswith("_seconds") else 1e-12):
        return []
    return [f"{at} is {_json.dumps(found)[:200]}; counted from the records it is {_json.dumps(expected)[:200]}"]


def _same(found: Any, expected: Any, slack: float) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(_same(*pair, slack) for pair in zip(found, expected, strict=True))
    numbers = (found, expected)
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
        # The order in which scores were added up is not in the records.
        return abs(found) < _LARGEST and math.isclose(found, expected, rel_tol=1e-9, abs_tol=slack)
    return type(found) is type(expected) and bool(found == expected)
