"""What crosses between head and nodes, as plain JSON: an attempt to produce or to verify, and what came of it.

An order to produce is made of the agent's view and can be made of nothing else; an order to verify holds the lanes of
one task. Both sides are ours, but neither believes a document's shape.

What a patch changed can be long and is no part of a document: the head makes it of the two trees that came, and a node
that verifies is sent it as a content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from securebench import _json
from securebench._canonical import digest_bytes
from securebench._paths import relative_path
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.captured import Budget
from securebench.candidates.store import MAX_TREE_JSON, CandidateStore
from securebench.candidates.tree import Delta, EntryKind, Tree, delta_between, is_digest
from securebench.cluster.shipping import Item
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, FailureReason, IntegrityError
from securebench.families.base import CandidateKind
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.evidence import EGRESS, OUTPUT, TRAJECTORY
from securebench.records.record import Judged
from securebench.resources import Component, PackFile, Resource, ResourceBundle, ResourceView, Visibility
from securebench.tasks import SecureBenchTask
from securebench.verifiers.base import Assurance, Status, VerificationResult

Place = Callable[[str, PurePosixPath], Path]
"""The directory beneath which a file of the pack lies on this side, by its digest and its path in the pack."""
MAX_EVIDENCE = 512 * 2**20  # of one attempt, all files together
MAX_DELTA = 2 * MAX_TREE_JSON  # of what a patch changed: both its trees
_TREES = {CandidateKind.PATCH: 2, CandidateKind.WORKSPACE: 1}
KEPT = {TRAJECTORY, EGRESS, OUTPUT}
_T = TypeVar("_T")


def decoded(what: str, data: bytes, build: Callable[[Any], _T]) -> _T:
    """The value a document stands for. Raises IntegrityError."""
    try:
        return build(_json.loads(data))
    except (_json.JsonError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(f"not {what} of ours: {type(error).__name__}: {error}") from error


# -- lanes -----------------------------------------------------------------------------------------------------------


def _resource_json(resource: Resource) -> dict[str, Any]:
    return {
        "name": resource.name,
        "visibility": str(resource.visibility),
        "value": resource.value,
        "is_asset": resource.is_asset,
        "files": [
            {
                "path": str(file.path),
                "mount": str(file.mount),
                "read_only": file.read_only,
                "digest": file.digest,
            }
            for file in resource.files
        ],
    }


def _resource(value: Any, place: Place) -> Resource:
    files = tuple(_pack_file(file, place) for file in value["files"])
    return Resource(str(value["name"]), Visibility(value["visibility"]), value["value"], files, bool(value["is_asset"]))


def _pack_file(value: Any, place: Place) -> PackFile:
    digest, path = str(value["digest"]), relative_path(str(value["path"]))
    if not is_digest(digest):
        raise ValueError("files are named by digest")
    return PackFile(
        root=place(digest, path),
        path=path,
        mount=PurePosixPath(value["mount"]),
        read_only=bool(value["read_only"]),
        digest=digest,
    )


def _environment(value: Any) -> TaskEnvironment:
    return TaskEnvironment(**{**value, "allowed_domains": tuple(value["allowed_domains"])})


# -- producing -------------------------------------------------------------------------------------------------------


def produce_order(request: ProducerRequest) -> bytes:
    """All a producer may know, and nothing else."""
    if request.view.component is not Component.AGENT:
        raise AssertionError("a producer gets the agent's view")
    return _json.dumps(
        {
            "task_id": request.task_id,
            "attempt": request.attempt,
            "kind": str(request.kind),
            "payload": dict(request.payload),
            "view": [_resource_json(resource) for resource in request.view],
            "environment": asdict(request.environment),
        }
    ).encode()


def producer_request(data: bytes, place: Place, store: CandidateStore) -> ProducerRequest:
    """Raises IntegrityError."""

    def build(value: Any) -> ProducerRequest:
        return ProducerRequest(
            task_id=str(value["task_id"]),
            attempt=int(value["attempt"]),
            kind=CandidateKind(value["kind"]),
            payload=dict(value["payload"]),
            view=ResourceView(Component.AGENT, tuple(_resource(item, place) for item in value["view"])),
            environment=_environment(value["environment"]),
            store=store,
        )

    return decoded("an order to produce", data, build)


@dataclass(frozen=True, slots=True)
class Brought:
    """A document, and the contents that it names."""

    document: dict[str, Any]
    items: tuple[Item, ...] = ()


def produced(production: Production, store: CandidateStore) -> Brought:
    """What came of producing; evidence is put into the store first. Raises CandidateError where that is too much."""
    candidate, failure = production.candidate, production.failure
    if (size := sum(map(len, production.evidence.values()))) > MAX_EVIDENCE:
        raise too_large("what is kept of the attempt", size, MAX_EVIDENCE)
    evidence = {name: store.put(data) for name, data in production.evidence.items()}
    items = [Item("b", digest) for digest in evidence.values()]
    if candidate is not None:
        items += _candidate_items(candidate, store)
    document = {
        "candidate": None if candidate is None else candidate_json(candidate),
        "failure": None if failure is None else {"reason": str(failure.reason), "message": str(failure)},
        "fault": production.fault,
        "stdout": production.stdout,
        "stderr": production.stderr,
        "metadata": dict(production.metadata),
        "usage": dict(production.usage),
        "evidence": evidence,
    }
    return Brought(document, tuple(dict.fromkeys(items)))


@dataclass(frozen=True, slots=True)
class Most:
    """How much an attempt can bring."""

    items: int
    size: int


def most_brought(kind: CandidateKind) -> Most:
    """The evidence of an attempt, and the trees of its candidate."""
    trees, budget = _TREES.get(kind, 0), Budget()
    return Most(trees * (budget.files + 1) + len(KEPT), trees * (budget.total_bytes + MAX_TREE_JSON) + MAX_EVIDENCE)


def production_from(value: Any, store: CandidateStore, most_evidence: int = MAX_EVIDENCE) -> Production:
    """Raises KeyError, TypeError or ValueError for what is none, IntegrityError."""
    candidate, failure = value["candidate"], value["failure"]
    return Production(
        candidate=None if candidate is None else candidate_from(candidate, _difference(candidate, store)),
        failure=None if failure is None else CandidateError(FailureReason(failure["reason"]), str(failure["message"])),
        fault=_text_or_none(value["fault"]),
        stdout=str(value["stdout"]),
        stderr=str(value["stderr"]),
        metadata=dict(value["metadata"]),
        usage=dict(value["usage"]),
        evidence=_evidence(value["evidence"], store, most_evidence),
    )


def _evidence(value: Any, store: CandidateStore, left: int) -> dict[str, bytes]:
    if not value.keys() <= KEPT:
        raise ValueError("files of an attempt that nobody keeps")
    kept = {}
    for name, digest in value.items():
        kept[str(name)] = store.read(str(digest), left)
        left -= len(kept[name])
    return kept


def _difference(candidate: Any, store: CandidateStore) -> Delta | None:
    """What a patch changed, of the trees that it names."""
    if candidate["delta"] is None:
        return None
    capture = candidate["metadata"]["capture"]
    return delta_between(store.load(str(capture["pristine"])), store.load(str(capture["tree"])))


# -- candidates ------------------------------------------------------------------------------------------------------


def candidate_json(candidate: CandidateArtifact) -> dict[str, Any]:
    return {
        "task_id": candidate.task_id,
        "kind": str(candidate.kind),
        "text": candidate.text,
        "patch": candidate.patch,
        "workspace": candidate.workspace,
        "delta": None if candidate.delta is None else candidate.delta.digest,
        "metadata": dict(candidate.metadata),
        "workspace_bytes": candidate.workspace_bytes,
    }


def candidate_from(value: Any, delta: Delta | None) -> CandidateArtifact:
    """`delta` is what it names. Raises KeyError, TypeError or ValueError for what is none."""
    if value["delta"] != (None if delta is None else delta.digest):
        raise ValueError("what a patch changed is not what it names")
    return CandidateArtifact(
        task_id=str(value["task_id"]),
        kind=CandidateKind(value["kind"]),
        text=_text_or_none(value["text"]),
        patch=_text_or_none(value["patch"]),
        workspace=_text_or_none(value["workspace"]),
        delta=delta,
        metadata=dict(value["metadata"]),
        workspace_bytes=int(value["workspace_bytes"]),
    )


def _text_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _candidate_items(candidate: CandidateArtifact, store: CandidateStore) -> Iterator[Item]:
    """All that its record will name: a workspace, or the two trees a patch is the difference of."""
    for digest in trees_of(candidate):
        yield from tree_items(store.load(digest))


def trees_of(candidate: CandidateArtifact) -> Iterator[str]:
    """The digests of these trees."""
    capture = candidate.metadata.get("capture")
    if candidate.workspace is not None:
        yield candidate.workspace
    elif candidate.delta is not None and isinstance(capture, Mapping):
        yield from (str(capture[name]) for name in ("pristine", "tree") if name in capture)


def tree_items(tree: Tree) -> Iterator[Item]:
    """A tree and its contents."""
    yield from (Item("b", entry.digest) for entry in tree.files)
    yield Item("t", tree.digest)


# -- verifying -------------------------------------------------------------------------------------------------------


def verify_order(
    task: SecureBenchTask, attempt: int, candidate: CandidateArtifact, seed: bytes, store: CandidateStore
) -> Brought:
    """One task with its lanes and one candidate, and the contents they name. Raises CandidateError where what a patch
    changed is too much to be sent."""
    written = None if candidate.delta is None else delta_bytes(candidate.delta)
    if written is not None and len(written) > MAX_DELTA:
        raise too_large("what its patch changed", len(written), MAX_DELTA)
    delta = None if written is None else digest_bytes(written)
    document = {
        "task": {
            "id": task.id,
            "benchmark_id": task.benchmark_id,
            "benchmark_version": task.benchmark_version,
            "task_type": task.task_type,
            "candidate_kind": task.candidate_kind,
            "row_digest": task.row_digest,
            "environment": asdict(task.environment),
            "resources": [_resource_json(resource) for resource in task.resources.resources],
        },
        "attempt": attempt,
        "seed": seed.hex(),
        "candidate": candidate_json(candidate),
        "delta": delta,
    }
    items: list[Item] = [Item("p", file.digest) for file in pack_files(task.resources)]
    if candidate.workspace is not None:
        items += tree_items(store.load(candidate.workspace))
    if candidate.delta is not None and delta is not None:
        items.append(Item("b", delta))
        entries = (*candidate.delta.added, *(change.after for change in candidate.delta.changed))
        items += [Item("b", entry.digest) for entry in entries if entry.kind is EntryKind.FILE]
    return Brought(document, tuple(dict.fromkeys(items)))


def delta_bytes(delta: Delta) -> bytes:
    """The content that a node is sent."""
    return _json.dumps(delta.as_json()).encode()


def too_large(what: str, size: int, most: int) -> CandidateError:
    return CandidateError(
        FailureReason.CANDIDATE_TOO_LARGE, f"{what} has {size} bytes; at most {most} pass between nodes"
    )


@dataclass(frozen=True, slots=True)
class VerifyOrder:
    task: SecureBenchTask
    attempt: int
    seed: bytes
    candidate: CandidateArtifact


def verify_order_from(value: Any, place: Place, store: CandidateStore) -> VerifyOrder:
    """With what came into the store. Raises KeyError, TypeError or ValueError for what is none, IntegrityError."""
    task, delta = value["task"], None
    if value["delta"] is not None:
        delta = Delta.from_json(_json.loads(store.read(str(value["delta"]), MAX_DELTA)))
    return VerifyOrder(
        SecureBenchTask(
            id=str(task["id"]),
            benchmark_id=str(task["benchmark_id"]),
            benchmark_version=int(task["benchmark_version"]),
            task_type=str(task["task_type"]),
            candidate_kind=str(task["candidate_kind"]),
            environment=_environment(task["environment"]),
            row_digest=str(task["row_digest"]),
            resources=ResourceBundle(tuple(_resource(item, place) for item in task["resources"])),
            _metadata={},
        ),
        int(value["attempt"]),
        bytes.fromhex(value["seed"]),
        candidate_from(value["candidate"], delta),
    )


def judged_json(judged: Judged) -> dict[str, Any]:
    return {
        "status": str(judged.status),
        "passed": judged.passed,
        "score": judged.score,
        "assurance": None if judged.assurance is None else str(judged.assurance),
        "failure_reason": None if judged.failure_reason is None else str(judged.failure_reason),
        "message": judged.message,
        "stdout": judged.stdout,
        "stderr": judged.stderr,
        "metadata": None if judged.metadata is None else dict(judged.metadata),
        "controls": [dict(control) for control in judged.controls],
        "usage": None if judged.usage is None else dict(judged.usage),
    }


def judged_from(value: Any) -> Judged:
    """Raises KeyError, TypeError or ValueError for what is none, or contradicts itself."""
    metadata, usage, reason, assurance = (value[name] for name in ("metadata", "usage", "failure_reason", "assurance"))
    status, passed, score = Status(value["status"]), _only(bool, value["passed"]), _only(float | int, value["score"])
    if (status in (Status.PASSED, Status.FAILED)) != (passed is not None and score is not None):
        raise ValueError("a verdict without its score, or a score without a verdict")
    VerificationResult(
        "", status, passed or False, score or 0.0, assurance, reason
    )  # raises where it contradicts itself
    return Judged(
        status=status,
        passed=passed,
        score=score,
        assurance=None if assurance is None else Assurance(assurance),
        failure_reason=None if reason is None else FailureReason(reason),
        message=str(value["message"]),
        stdout=str(value["stdout"]),
        stderr=str(value["stderr"]),
        metadata=None if metadata is None else dict(metadata),
        controls=tuple(dict(control) for control in value["controls"]),
        usage=None if usage is None else dict(usage),
    )


def _only(kind: Any, value: Any) -> Any:
    if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        raise TypeError(f"expected {kind} and found {type(value).__name__}")
    return value


def pack_files(lanes: ResourceBundle | ResourceView) -> Iterator[PackFile]:
    for resource in lanes.resources:
        yield from resource.files


def evidence_bytes(document: Mapping[str, Any]) -> bytes:
    """What a node signs the digest of: what the head will read, so that two halves of a character which stand side by
    side are one."""
    text = _json.dumps(document)
    if "\\ud" in text:
        text = _json.dumps(_json.loads(text))
    return text.encode()
