"""The `chat` harness: one question to a model for each attempt, its reply as the candidate. No sandbox, because nothing
that is not ours runs.

Whose fault it is when there is no candidate: the model's when it refused, said nothing, took too long, or could not
take the task in; the operator's or the host's when the endpoint cannot be reached, keeps failing, does not know the key
or the model, or does not speak its API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from securebench import _json
from securebench._canonical import digest_value
from securebench.candidates.artifact import CandidateArtifact
from securebench.egress.broker import Broker, BrokerSession, ModelAccess, Reply
from securebench.egress.broker.session import MAX_REPLY
from securebench.egress.providers.schema import Endpoint
from securebench.environment import TaskEnvironment
from securebench.errors import (
    CandidateError,
    ConfigError,
    FailureReason,
    InfrastructureError,
    ProducerError,
    SecureBenchError,
)
from securebench.harness_schema import ChatConfig
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.chat_api import (
    Answer,
    NotAnAnswer,
    Question,
    body_for,
    endpoint_for,
    error_words,
    read_answer,
)
from securebench.harnesses.evidence import EGRESS, TRAJECTORY
from securebench.harnesses.prompts import Prompt
from securebench.harnesses.replies import reply_candidate
from securebench.harnesses.trajectory import Metrics, Step, Trajectory
from securebench.harnesses.workspace import extracted

MAX_SHOWN = 64 * 1024
_TOO_LONG = re.compile(r"context[ _](length|window|size)|prompt is too long|too many (input )?tokens", re.IGNORECASE)
_TURNED_DOWN = {"content_filter", "content_policy_violation"}


@dataclass(frozen=True, slots=True)
class ChatHarnessProducer:
    """Asks `harness.config.model` through the broker: same rules, budget and records as for agents."""

    config: ChatConfig
    broker: Broker
    prompt: Prompt

    def memory(self, environment: TaskEnvironment) -> int:  # noqa: ARG002 — the protocol's shape
        return 0

    async def produce(self, request: ProducerRequest) -> Production:
        """Raises InfrastructureError, and ConfigError for a task whose candidate is a workspace."""
        question = Question(
            model=self.config.model,
            prompt=self.prompt.render(request.payload, request.kind),
            system=self.config.system,
            temperature=self.config.temperature,
            max_tokens=self.config.max_tokens,
        )
        async with self.broker.session(request.task_id) as session:
            (access,) = session.accesses
            endpoint = endpoint_for(access.provider)
            answer: Answer | None = None
            candidate: CandidateArtifact | None = None
            failure: CandidateError | None = None
            fault: str | None = None
            try:
                answer = await self._ask(request, session, access, endpoint, question)
                candidate = _candidate(request, answer)
            except CandidateError as error:
                failure = error
            except InfrastructureError as error:
                if not any(exchange.status == 200 for exchange in session.exchanges):
                    raise  # nobody answered, so asking again is no second try
                fault = str(error)
        if answer is not None and request.on_output is not None:
            request.on_output("stdout", _plain(answer.text or answer.refusal or "").encode() + b"\n")
        return Production(
            candidate=candidate,
            failure=failure,
            fault=fault,
            stdout=_shown(answer),
            metadata=self._metadata(access, answer) | extracted(candidate),
            usage=session.usage.as_json(),
            evidence=self._evidence(request, session, question, answer),
        )

    async def _ask(
        self,
        request: ProducerRequest,
        session: BrokerSession,
        access: ModelAccess,
        endpoint: Endpoint,
        question: Question,
    ) -> Answer:
        """Raises CandidateError where the model, InfrastructureError where the endpoint failed."""
        limits = (self.config.timeout_seconds, request.environment.timeout_seconds)
        seconds = min(limit for limit in limits if limit is not None)
        reply: Reply | None = None
        with anyio.move_on_after(seconds):
            reply = await session.ask(access, endpoint.path, body_for(question, endpoint, access.provider))
        if reply is None:
            raise _too_late(session, access, seconds)
        if reply.status != 200:
            raise _why_not(session, access, reply)
        try:
            return read_answer(reply.body, endpoint)
        except NotAnAnswer as error:
            raise InfrastructureError(f"{access.base_url} did not answer as expected: {error}") from error

    def _metadata(self, access: ModelAccess, answer: Answer | None) -> dict[str, Any]:
        described = {
            "provider": access.provider.name,
            "base_url": access.base_url,
            "model": self.config.model,
            "temperature": self.config.temperature,
            "max_tokens": self.config.max_tokens,
            "system": self.config.system,
            "prompt": self.prompt.digest,
        }
        shown: dict[str, Any] = {"harness": "chat", "agent": described}
        shown["harness_digest"] = digest_value({"harness": "chat", **described})
        if answer is not None:
            shown |= {"answered_by": answer.model, "finish_reason": answer.finish_reason}
        return shown

    def _evidence(
        self, request: ProducerRequest, session: BrokerSession, question: Question, answer: Answer | None
    ) -> Mapping[str, bytes]:
        usage = session.usage
        spent = Metrics(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd)
        steps = [] if question.system is None else [Step("system", question.system)]
        steps.append(Step("user", question.prompt))
        if answer is not None:
            steps.append(Step("agent", answer.text or answer.refusal or "", metrics=spent))
        trajectory = Trajectory(
            session_id=f"{request.task_id}#{request.attempt}",
            agent="chat",
            version="",
            model=question.model if answer is None else answer.model or question.model,
            steps=steps,
            total=spent,
            extra={} if answer is None else {"finish_reason": answer.finish_reason},
        )
        passed = {"exchanges": [exchange.as_json() for exchange in session.exchanges]}
        return {TRAJECTORY: trajectory.encode(session.secrets), EGRESS: (_json.dumps(passed) + "\n").encode()}


def _candidate(request: ProducerRequest, answer: Answer) -> CandidateArtifact:
    """Raises CandidateError."""
    if not answer.text.strip():
        cut = f" (it ended for {answer.finish_reason})" if answer.finish_reason else ""
        words = "the model refused to answer" if answer.refusal else f"the model's reply holds no text{cut}"
        raise CandidateError(FailureReason.NO_ANSWER, words)
    return reply_candidate(request.task_id, request.kind, answer.text, request.payload["input"])


def _too_late(session: BrokerSession, access: ModelAccess, seconds: float) -> CandidateError | InfrastructureError:
    """Time that went by while the endpoint had to be asked again is not the model's."""
    retries = session.exchanges[-1].retries if session.exchanges else ()
    if retries:
        return InfrastructureError(f"{access.base_url} did not answer within {seconds:g} seconds: {', '.join(retries)}")
    return ProducerError(FailureReason.PRODUCER_TIMEOUT, f"the model took longer than {seconds:g} seconds")


def _why_not(session: BrokerSession, access: ModelAccess, reply: Reply) -> SecureBenchError:
    """Asking again helps against a busy endpoint, not against a key or a model it does not know."""
    if session.exhausted is not None:
        return ProducerError(FailureReason.BUDGET_EXHAUSTED, f"the budget is used up: {session.exhausted}")
    if session.exchanges and session.exchanges[-1].reply_bytes > MAX_REPLY:
        return CandidateError(FailureReason.CANDIDATE_TOO_LARGE, f"the reply exceeds {MAX_REPLY} bytes")
    code, message = error_words(reply.body)
    if reply.status in {400, 413, 422}:
        if code in _TURNED_DOWN:
            return CandidateError(FailureReason.NO_ANSWER, "the provider turned the task down")
        if _TOO_LONG.search(f"{code} {message}"):
            what = "the task does not fit into what the model can read"
            return ProducerError(FailureReason.PRODUCER_FAILED, f"{what}: {message[:500]}")
    words = f": {message[:500]}" if message else ""
    kind = ConfigError if reply.status in {401, 403, 404} else InfrastructureError
    return kind(f"{access.base_url} answered {reply.status}{words}")


def _shown(answer: Answer | None) -> str:
    """For the record, which stays small."""
    text = "" if answer is None else _plain(answer.text or answer.refusal or "")
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} […cut]"


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
