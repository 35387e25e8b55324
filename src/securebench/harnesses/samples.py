"""The `samples` harness: candidates that were produced elsewhere, in the formats people have them in. One JSON object
each; it names its task and holds exactly one candidate:

| Key           | For         | What it is                                                                |
|---------------|-------------|---------------------------------------------------------------------------|
| `completion`  | text, code  | an answer; of a program what stands behind the code its task starts with  |
| `solution`    | text, code  | an answer; a whole program                                                |
| `model_patch` | patches     | a unified diff                                                            |
| `model_reply` | all of them | what a model replied, read as the `chat` harness reads replies            |

The task is named by `task_id` or `instance_id`. `model_name_or_path` is kept for reports, and decides nothing. Other
keys are the sampler's own. A candidate that is null was not produced: its attempt fails and stays counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from securebench import _json
from securebench._canonical import digest_value
from securebench._schema import found
from securebench.answers.python_join import completed
from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.extraction import MAX_PATCH_BYTES, MAX_TEXT_BYTES, artifact_for, checked_text
from securebench.environment import TaskEnvironment
from securebench.errors import CandidateError, ConfigError, FailureReason
from securebench.families.base import CandidateKind
from securebench.families.code_completion import is_python
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.replies import reply_candidate
from securebench.harnesses.workspace import extracted

TASK_KEYS = ("task_id", "instance_id")
REPLY = "model_reply"
MODEL = "model_name_or_path"
_NAME = 200  # characters that are kept of it
KEYS = {
    CandidateKind.TEXT: ("completion", "solution", REPLY),
    CandidateKind.CODE: ("completion", "solution", REPLY),
    CandidateKind.PATCH: ("model_patch", REPLY),
}
CANDIDATE_KEYS = ("completion", "solution", "model_patch", REPLY)
EXACT = ("solution", "model_patch")
"""Keys under which a candidate stands as it is judged."""


class NotASample(ValueError):
    """What is wrong with it, and under which key."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class Sample:
    """One candidate of one task: the key it stood under, and its text, None where nothing was produced. `model` is who
    made it, by the sampler's word."""

    task_id: str
    key: str
    text: str | None
    model: str | None = None


def read_sample(value: Any) -> Sample:
    """The sample that parsed JSON is. Raises NotASample."""
    if not isinstance(value, dict):
        raise NotASample("", f"expected an object, found {found(value)}")
    named = [key for key in TASK_KEYS if key in value]
    if len(named) != 1:
        raise NotASample("", f"names {'its task twice' if named else 'no task'}: give task_id (or instance_id)")
    task = value[named[0]]
    if not isinstance(task, str | int) or isinstance(task, bool):
        raise NotASample(named[0], f"expected the id of a task, found {found(task)}")
    given = [key for key in CANDIDATE_KEYS if key in value]
    if len(given) != 1:
        what = f"holds {' and '.join(given)}" if given else "holds no candidate"
        raise NotASample("", f"{what}: give exactly one of {', '.join(CANDIDATE_KEYS)}")
    text = value[given[0]]
    if text is not None and not isinstance(text, str):
        raise NotASample(given[0], f"expected text, found {found(text)}")
    model = value.get(MODEL)
    return Sample(str(task), given[0], text, model[:_NAME] if isinstance(model, str) and model else None)


def check_kind(sample: Sample, kind: CandidateKind) -> None:
    """Whether it is a candidate of this kind. Raises NotASample."""
    if kind not in KEYS:
        raise NotASample("task_id", f"this task collects a {kind}, which no sample holds; leave its samples out")
    if sample.key not in KEYS[kind]:
        raise NotASample(sample.key, f"this task collects a {kind}: give {' or '.join(KEYS[kind])}")


def candidate_of(sample: Sample, kind: CandidateKind, public: Mapping[str, Any]) -> CandidateArtifact | None:
    """What is judged, given the task's public fields; None where nothing was produced. Raises CandidateError."""
    if sample.text is None:
        return None
    most = MAX_PATCH_BYTES if sample.key == "model_patch" else MAX_TEXT_BYTES
    text = checked_text(sample.text.encode("utf-8", "surrogatepass"), "the sample", most=most)
    if sample.key == REPLY:
        return reply_candidate(sample.task_id, kind, text, public)
    if kind is CandidateKind.PATCH:
        return artifact_for(sample.task_id, kind, text if text.endswith("\n") or not text else f"{text}\n", sample.key)
    if kind is not CandidateKind.CODE or sample.key != "completion" or not is_python(str(public.get("language", ""))):
        return artifact_for(sample.task_id, kind, text, sample.key)
    text, how = completed(text, public.get("starter_code"), str(public.get("prompt", "")), public.get("entry_point"))
    artifact = artifact_for(sample.task_id, kind, text, sample.key)
    return replace(artifact, metadata={**artifact.metadata, "joined": str(how)})


def _parsed(line: bytes) -> Any:
    """Raises CandidateError: how deep values may be nested depends on where they are read, so that of a line that was
    checked only its author can have made this."""
    try:
        return _json.loads(line)
    except _json.JsonError as error:
        raise CandidateError(FailureReason.CANDIDATE_REFUSED, f"the sample cannot be read: {error}") from None


@dataclass(frozen=True)
class SamplesProducer:
    """Gives the candidate that came with the order. `digest` is that of the samples file, None where there is none."""

    digest: str | None = None

    def memory(self, environment: TaskEnvironment) -> int:  # noqa: ARG002 — the protocol's shape
        return 0

    async def produce(self, request: ProducerRequest) -> Production:
        """Raises ConfigError for a sample that was not checked before it came here."""
        metadata = self._metadata if request.line is None else self._metadata | {"line": request.line}
        if request.sample is None:
            missing = CandidateError(FailureReason.NO_CANDIDATE, "there is no sample of this task")
            return Production(candidate=None, failure=missing, metadata=metadata)
        try:
            sample = replace(read_sample(_parsed(request.sample)), task_id=request.task_id)
            check_kind(sample, request.kind)
            if sample.model is not None:
                metadata = metadata | {"agent": {"model": sample.model}}
            candidate = candidate_of(sample, request.kind, request.payload["input"])
        except CandidateError as error:
            return Production(candidate=None, failure=error, metadata=metadata)
        except NotASample as error:
            raise ConfigError(f"task {request.task_id}: not a checked sample: {error}") from error
        return Production(candidate=candidate, metadata=metadata | extracted(candidate))

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        described = {"harness": "samples", "samples": self.digest}
        return described | {"harness_digest": digest_value(described)}
