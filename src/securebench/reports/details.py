"""All that is told of one attempt besides its row: what was asked, the candidate, every test, what everybody printed,
what it used, the transcript. Texts are the record's, cut to bounds; whoever shows them makes them inert.

Only public fields of a task are read: private ones stand redacted in the record, and are not even looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from securebench import _json
from securebench.candidates.store import CandidateStore
from securebench.errors import IntegrityError, StoreError
from securebench.reports._values import listed, mapping, number, text
from securebench.reports.clips import Clip, clip
from securebench.reports.transcript import Transcript, read_transcript
from securebench.resources import Visibility

TRAJECTORY = "trajectory.json"
_MAX_TRAJECTORY = 32 * 2**20
_NAME = 200
_NOTHING = Clip("")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is told: characters of each text, steps of a transcript, and lines of each list."""

    text: int
    steps: int
    listed: int


EVERYTHING = Bounds(256 * 1024, 2000, 5000)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What was judged: a text, a patch, or the files of a workspace by path and size."""

    kind: str
    content: Clip = _NOTHING
    files: tuple[tuple[str, int], ...] = ()
    more_files: int = 0
    problem: str = ""  # why the files cannot be listed

    def as_json(self) -> dict[str, Any]:
        if self.kind != "workspace":
            return {"kind": self.kind, "content": self.content.as_json()}
        files = [{"path": path, "size": size} for path, size in self.files]
        return {"kind": self.kind, "files": files, "more_files": self.more_files, "problem": self.problem or None}


@dataclass(frozen=True, slots=True)
class Test:
    """One test, by number or by the list of the row it is in: names of tests are private."""

    name: str
    outcome: str
    why: str = ""
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "outcome": self.outcome, "why": self.why or None, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class Control:
    """Something run beside the tests. `held` is None where it was not run."""

    name: str
    held: bool | None
    detail: str

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "held": self.held, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Detail:
    """One attempt. `texts` and `facts` are by title, in the order they are shown; `transcript` is None where there is
    none, and then `no_transcript` may say why."""

    message: str
    asked: tuple[tuple[str, Clip], ...]
    candidate: Candidate | None
    tests: tuple[Test, ...]
    more_tests: int
    controls: tuple[Control, ...]
    texts: tuple[tuple[str, Clip], ...]
    facts: tuple[tuple[str, str], ...]
    transcript: Transcript | None
    no_transcript: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "message": self.message,
            "asked": {name: said.as_json() for name, said in self.asked},
            "candidate": None if self.candidate is None else self.candidate.as_json(),
            "tests": [test.as_json() for test in self.tests],
            "more_tests": self.more_tests,
            "controls": [control.as_json() for control in self.controls],
            "texts": {name: said.as_json() for name, said in self.texts},
            "facts": dict(self.facts),
            "transcript": None if self.transcript is None else self.transcript.as_json(),
            "no_transcript": self.no_transcript or None,
        }


def detail_of(record: Mapping[str, Any], store: CandidateStore, bounds: Bounds) -> Detail:
    """Of a record whose deciding fields were checked. Never raises for what a record says or a store holds."""
    tests = list(_tests(mapping(record.get("verifier_metadata"))))
    transcript, why_none = _transcript(record, store, bounds)
    return Detail(
        message=text(record.get("failure_message"))[: max(_NAME, bounds.text)],
        asked=tuple(_asked(mapping(record.get("resource_summary")), bounds)),
        candidate=_candidate(record, store, bounds),
        tests=tuple(tests[: bounds.listed]),
        more_tests=max(0, len(tests) - bounds.listed),
        controls=tuple(_controls(record))[: bounds.listed],
        texts=tuple(_texts(record, bounds)),
        facts=tuple(_facts(record)),
        transcript=transcript,
        no_transcript=why_none,
    )


def _asked(fields: Mapping[str, Any], bounds: Bounds) -> Iterator[tuple[str, Clip]]:
    for name, field in fields.items():
        if mapping(field).get("visibility") != Visibility.PUBLIC:
            continue
        value = field.get("value")
        if shown := value if isinstance(value, str) else _lines(value):
            yield name[:_NAME], clip(shown, bounds.text)


def _lines(value: Any) -> str:
    """A list of texts as lines, whatever else as JSON."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(f"{chr(ord('A') + n) if n < 26 else n}. {one}" for n, one in enumerate(value))
    return "" if value is None else _json.dumps(value)


def _candidate(record: Mapping[str, Any], store: CandidateStore, bounds: Bounds) -> Candidate | None:
    for kind in ("text", "patch"):
        if isinstance(content := record.get(f"candidate_{kind}"), str):
            return Candidate(kind, clip(content, bounds.text))
    digest = record.get("candidate_workspace")
    if not isinstance(digest, str):
        return None
    try:
        files = [(entry.path, entry.size) for entry in store.load(digest).files]
    except (IntegrityError, StoreError) as error:
        return Candidate("workspace", problem=str(error)[:_NAME])
    return Candidate("workspace", files=tuple(files[: bounds.listed]), more_files=max(0, len(files) - bounds.listed))


def _tests(metadata: Mapping[str, Any]) -> Iterator[Test]:
    if isinstance(outcomes := metadata.get("outcomes"), list):
        for place, one in enumerate(outcomes, 1):
            seen = mapping(one)
            yield Test(f"{place}", _short(seen.get("outcome")), _short(seen.get("why")), number(seen.get("seconds")))
        return
    tests = metadata.get("tests")
    if isinstance(tests, list):
        yield from (Test(f"{place}", _short(outcome)) for place, outcome in enumerate(tests, 1))
    for part, words in (("fail_to_pass", "must pass now"), ("pass_to_pass", "must still pass")):
        for place, outcome in enumerate(listed(mapping(tests).get(part)), 1):
            yield Test(f"{words} {place}", _short(outcome))


def _controls(record: Mapping[str, Any]) -> Iterator[Control]:
    for one in map(mapping, listed(record.get("controls"))):
        held = one.get("held")
        yield Control(_short(one.get("name")), held if isinstance(held, bool) else None, _short(one.get("detail")))


def _texts(record: Mapping[str, Any], bounds: Bounds) -> Iterator[tuple[str, Clip]]:
    metadata = mapping(record.get("verifier_metadata"))
    if words := "; ".join(filter(None, (_short(metadata.get(name)) for name in ("rule", "note")))):
        yield "Verdict", Clip(words)
    for name, title in (
        ("verifier_stdout", "Verifier output"),
        ("verifier_stderr", "Verifier messages"),
        ("producer_stdout", "Agent output"),
        ("producer_stderr", "Agent messages"),
    ):
        printed = text(record.get(name))
        if printed and printed != record.get("candidate_text"):  # where that is the answer, it is told once
            yield title, clip(printed, bounds.text)


def _facts(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    agent, usage = mapping(record.get("producer_metadata")), mapping(record.get("usage"))
    timings, models = mapping(record.get("timings")), mapping(usage.get("models"))
    if ended := _short(agent.get("outcome")):
        code = agent.get("exit_code")
        yield "Agent ended", f"{ended}{f', exit code {code}' if isinstance(code, int) else ''}"
    for title, used in (("Agent used", agent), ("Verifier used", usage)):
        parts = [
            f"{value:.2f} s {word}"
            for name, word in (("wall_seconds", "in all"), ("cpu_seconds", "of processor time"))
            if (value := number(used.get(name))) is not None
        ]
        if (memory := number(used.get("peak_memory"))) is not None:
            parts.append(f"{memory / 2**20:.1f} MiB of memory")
        if parts:
            yield title, ", ".join(parts)
    for name, title in (("produce_seconds", "Time to produce"), ("verify_seconds", "Time to verify")):
        if (seconds := number(timings.get(name))) is not None:
            yield title, f"{seconds:.2f} s"
    if (requests := number(models.get("requests"))) is not None:
        tokens = [f"{number(models.get(f'{kind}_tokens')) or 0:,.0f} {kind}" for kind in ("input", "cached", "output")]
        yield "Model", f"{requests:,.0f} request{'s' if requests != 1 else ''}; tokens: {', '.join(tokens)}"
    if (cost := number(record.get("cost"))) is not None:
        yield "Cost", f"{cost:.4f} USD"
    if retries := len(listed(record.get("repeats"))):
        yield "Faults of the host", f"{retries} tried again"
    for name in ("candidate", "image"):
        if digest := _short(mapping(record.get("digests")).get(name)):
            yield f"Digest of the {name}", digest


def _transcript(record: Mapping[str, Any], store: CandidateStore, bounds: Bounds) -> tuple[Transcript | None, str]:
    kept = mapping(mapping(record.get("evidence")).get(TRAJECTORY))
    digest = kept.get("digest")
    if not isinstance(digest, str):
        return None, ""
    if not bounds.steps:
        return None, "There is a transcript, for which this page has no room"
    try:
        return read_transcript(store.read(digest, _MAX_TRAJECTORY), bounds.steps, max(200, bounds.text // 4)), ""
    except (ValueError, IntegrityError, StoreError) as error:
        return None, f"The transcript cannot be read: {str(error)[:_NAME]}"


def _short(value: Any) -> str:
    return text(value, _NAME)
