"""What can be done to the files of a run by somebody who may write them and does not have its maker's key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from securebench._canonical import canonical_bytes, digest_bytes
from securebench.audit.plays.record import Change
from securebench.records import seal
from securebench.records.dsse import Envelope, decode_envelope
from securebench.records.keys import SigningKey
from securebench.records.plan import PLAN_FILE, load_plan
from securebench.records.seal import CHECKPOINTS_FILE, SEAL_FILE
from securebench.records.store import RECORDS_FILE, ChainState
from securebench.records.summary import SUMMARY_FILE, summarize

Lines = list[bytes]
PASSED = {"verification_status": "passed", "passed": True, "score": 1.0, "failure_reason": None}


def rewritten(line: bytes, changes: Mapping[str, Any]) -> bytes:
    """A line of records with other values."""
    return (json.dumps(json.loads(line) | dict(changes), ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _digests(line: bytes, **changes: str) -> bytes:
    return rewritten(line, {"digests": json.loads(line)["digests"] | changes})


def _cut(lines: Lines) -> Lines:
    return [*lines[:-1], lines[-1][: len(lines[-1]) // 2]]


EDITS: dict[str, Callable[[Lines], Lines]] = {
    "verdict-edited": lambda lines: [lines[0], rewritten(lines[1], PASSED), *lines[2:]],
    "first-dropped": lambda lines: lines[1:],
    "one-dropped": lambda lines: [*lines[:4], *lines[5:]],
    "last-dropped": lambda lines: lines[:-1],
    "one-repeated": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "repeated-at-the-end": lambda lines: [*lines, lines[0]],
    "places-changed": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "one-put-in": lambda lines: [*lines[:3], rewritten(lines[2], {"attempt": 7}), *lines[3:]],
    "unplanned-task": lambda lines: [
        *lines,
        rewritten(lines[2], {"task_id": "easy", "previous": digest_bytes(lines[-1])}),
    ],
    "chained-behind-the-seal": lambda lines: [*lines, rewritten(lines[0], {"previous": digest_bytes(lines[-1])})],
    "cut-in-a-line": _cut,
    "cut-to-nothing": lambda _: [],
    "answer-replaced": lambda lines: [rewritten(lines[0], {"candidate_text": "Answer: 43\n"}), *lines[1:]],
    "contradiction": lambda lines: [rewritten(lines[0], {"passed": False}), *lines[1:]],
    "score-beyond-all": lambda lines: [rewritten(lines[0], {"score": 2}), *lines[1:]],
}
"""Ways to change the lines of `candidates.jsonl`, each of which a credulous reader reads another run from."""


def edited(file: str, edit: Callable[[Lines], Lines]) -> Change:
    """Rewrite the lines of a file."""

    def change(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
        path = run / file
        path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))

    return change


def json_edited(file: str, edit: Callable[[dict[str, Any]], object]) -> Change:
    """Change a file that is one JSON value, in its canonical form."""

    def change(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
        value = json.loads((run / file).read_bytes())
        edit(value)
        try:
            (run / file).write_bytes(canonical_bytes(value))
        except ValueError:  # numbers that have no canonical form
            (run / file).write_text(json.dumps(value))

    return change


def payload_edited(envelope: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    """A signed statement that says something else, with its old signatures."""
    old = decode_envelope(envelope.strip(), "x")
    value = json.loads(old.payload)
    edit(value)
    return Envelope(old.payload_type, json.dumps(value).encode(), old.signatures).encode() + b"\n"


def seal_edited(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
    path = run / SEAL_FILE
    path.write_bytes(payload_edited(path.read_bytes(), lambda value: value["predicate"]["counts"].update(passed=6)))


def content_replaced(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
    """Other bytes of the same length where a candidate is stored."""
    for path in (run / "candidates").rglob("*"):
        if path.is_file() and b"wrong word" in (data := path.read_bytes()):
            path.chmod(0o644)
            path.write_bytes(data.replace(b"wrong word", b"right     "))


def removed(name: str) -> Change:
    def change(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
        (run / name).unlink()

    return change


def forged(run: Path, key: SigningKey) -> None:
    """All a forger can do: change every verdict, chain, count and sign anew, with a key of their own."""
    lines = (run / RECORDS_FILE).read_bytes().splitlines()
    head, written = digest_bytes((run / PLAN_FILE).read_bytes()), []
    for line in lines:
        record = json.loads(line) | PASSED | {"previous": head}
        written.append((json.dumps(record, separators=(",", ":")) + "\n").encode())
        head = digest_bytes(written[-1])
    data = b"".join(written)
    (run / RECORDS_FILE).write_bytes(data)
    summary = summarize(load_plan(run)[0], map(json.loads, written))
    (run / SUMMARY_FILE).write_text(json.dumps(summary.as_json()))
    old = seal.open_statement((run / SEAL_FILE).read_bytes().strip(), "x").predicate
    state = ChainState(head, len(lines), len(data), digest_bytes(data).removeprefix("sha256:"))
    counts = {"passed": len(lines)}
    seed = bytes.fromhex(old.seed.value or "")
    (run / SEAL_FILE).unlink()
    progress = seal.Progress(
        old.run_id, old.plan, state, counts, seed, old.started_at, old.finished_at, old.securebench
    )
    seal.seal_run(run, progress, "complete", key)


def forged_without_checkpoints(run: Path, key: SigningKey) -> None:
    """The same, and nothing left that was signed before."""
    forged(run, key)
    (run / CHECKPOINTS_FILE).unlink()


def checkpoint_as_seal(run: Path, key: SigningKey) -> None:  # noqa: ARG001 — the shape of a change
    """A signed statement of the same run in the place of another: the run would end where it was interrupted."""
    lines = (run / RECORDS_FILE).read_bytes().splitlines(keepends=True)
    first = (run / CHECKPOINTS_FILE).read_bytes().splitlines()[0]
    covered = seal.open_statement(first, "x").predicate.chain.records
    (run / RECORDS_FILE).write_bytes(b"".join(lines[:covered]))
    (run / SEAL_FILE).write_bytes(first + b"\n")
    (run / CHECKPOINTS_FILE).unlink()
