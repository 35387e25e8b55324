"""The chat harness against a real server through the real broker: whose fault it is when there is no candidate."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.packs import row, tasks, write_pack

from securebench.candidates.extraction import MAX_TEXT_BYTES
from securebench.candidates.store import CandidateStore
from securebench.egress.broker import Broker, BudgetLimits, ModelAccess
from securebench.egress.broker.upstream import Patience
from securebench.egress.providers.loading import load_provider
from securebench.errors import ConfigError, FailureReason, InfrastructureError
from securebench.families.base import CandidateKind
from securebench.harness_schema import ChatConfig
from securebench.harnesses.base import ProducerRequest, Production
from securebench.harnesses.chat import ChatHarnessProducer
from securebench.harnesses.prompts import Prompt
from securebench.resources import Component
from securebench.testing.model_server import KEY, Fault, ModelServer, Script, ToolCall, Turn, serve_model

QUICK = Patience(tries=3, first_wait_seconds=0.01)
HUMAN = row(
    "code_completion",
    input={
        "prompt": 'import math\n\n\ndef root(x: float) -> float:\n    """The square root."""\n',
        "language": "python",
        "entry_point": "root",
    },
)


class Chat:
    """One attempt at one task, and what the server saw of it."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        self.server: ModelServer | None = None
        self.output: list[tuple[str, bytes]] = []

    def __call__(
        self,
        script: Script,
        source: dict[str, Any] | None = None,
        *,
        provider: str = "openai_compatible",
        key: str = KEY,
        attempt: BudgetLimits | None = None,
        base_url: str | None = None,
        **config: Any,
    ) -> Production:
        async def main() -> Production:
            async with serve_model(script) as self.server:
                described = load_provider(provider)
                address = base_url or (self.server.url if provider == "anthropic" else self.server.base_url)
                access = ModelAccess(described, "scripted-1", address, key)
                settings = ChatConfig(provider=provider, base_url=address, model="scripted-1", **config)
                async with Broker([access], attempt=attempt, patience=QUICK) as broker:
                    producer = ChatHarnessProducer(settings, broker, Prompt.load("chat"))
                    return await producer.produce(self.request(source or row("short_answer")))

        return anyio.run(main)

    def request(self, source: dict[str, Any]) -> ProducerRequest:
        (task,) = tasks(write_pack(self.path / "pack", [source]))
        return ProducerRequest(
            task_id=task.id,
            attempt=1,
            kind=CandidateKind(task.candidate_kind),
            payload=task.agent_payload(),
            view=task.view_for(Component.AGENT),
            environment=task.environment,
            store=CandidateStore(self.path / "store"),
            on_output=lambda stream, data: self.output.append((stream, data)),
        )

    @property
    def body(self) -> Any:
        assert self.server is not None
        return self.server.requests[-1].json


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    return Chat(tmp_path)


@pytest.mark.parametrize("provider", ["openai_compatible", "openai", "anthropic"])
def test_a_reply_is_the_candidate(chat: Chat, provider: str) -> None:
    turn = Turn("Six times seven.\nAnswer: 42", usage=(100, 20, 7), model="scripted-1-2030")
    made = chat([turn], provider=provider, system="Be right.", temperature=0.0, max_tokens=50)
    assert made.failure is None
    assert made.candidate is not None
    assert made.candidate.text == made.stdout == "Six times seven.\nAnswer: 42"
    assert chat.output == [("stdout", b"Six times seven.\nAnswer: 42\n")]
    assert made.metadata["answered_by"] == "scripted-1-2030"
    assert made.metadata["finish_reason"] in {"stop", "end_turn"}
    assert made.metadata["agent"]["prompt"] == Prompt.load("chat").digest
    assert (made.usage["input_tokens"], made.usage["cached_tokens"], made.usage["output_tokens"]) == (100, 20, 7)
    assert chat.server is not None
    (request,) = chat.server.requests
    assert request.key == KEY
    assert chat.body["temperature"] == 0.0
    assert "What is 6 * 7?" in chat.server.asked[0].text
    assert "Be right." in chat.server.asked[0].text


def test_the_conversation_is_evidence_without_the_key(chat: Chat) -> None:
    made = chat([Turn(f"Your key is {KEY}, and 42.")], system="Be right.")
    steps = json.loads(made.evidence["trajectory.json"])["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent"]
    assert "What is 6 * 7?" in steps[1]["message"]
    (exchange,) = json.loads(made.evidence["egress.json"])["exchanges"]
    assert (exchange["status"], exchange["path"]) == (200, "/chat/completions")
    assert KEY.encode() not in b"".join(made.evidence.values())
    assert KEY not in made.stdout + str(made.metadata) + str(made.candidate)


@pytest.mark.parametrize(
    "reply",
    [
        "```python\nimport math\n\n\ndef root(x):\n    return math.sqrt(x)\n```",
        "Only the body:\n\n```python\n    return math.sqrt(x)\n```",
        "return math.sqrt(x)",
        "def root(x):\n    return math.sqrt(x)",
    ],
)
def test_code_is_joined_to_the_prompt(chat: Chat, reply: str) -> None:
    made = chat([Turn(reply)], HUMAN)
    assert made.candidate is not None
    assert made.candidate.kind is CandidateKind.CODE
    assert made.candidate.metadata["joined"] in {"alone", "after_preamble", "continued"}
    space: dict[str, Any] = {}
    exec(made.candidate.text or "", space)
    assert space["root"](9.0) == 3.0


def test_a_patch_is_one_block(chat: Chat) -> None:
    made = chat([Turn("So:\n```diff\n--- a/x\n+++ b/x\n```")], row("repo_patch", assets=[{"path": "tree"}]))
    assert made.candidate is not None
    assert (made.candidate.patch, made.candidate.metadata["source"]) == ("--- a/x\n+++ b/x\n", "fence")


def test_a_workspace_needs_an_agent(chat: Chat) -> None:
    with pytest.raises(ConfigError, match="terminal-1 collects a workspace, which needs an agent"):
        chat([Turn("sort")], row("terminal_task"))
    assert chat.server is not None
    assert chat.server.requests == []


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic"])
@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (Turn(""), FailureReason.NO_ANSWER),
        (Turn(" \n"), FailureReason.NO_ANSWER),
        (Turn("", finish="length"), FailureReason.NO_ANSWER),
        (Turn("", finish="refusal"), FailureReason.NO_ANSWER),
        (Turn("x" * (MAX_TEXT_BYTES + 1)), FailureReason.CANDIDATE_TOO_LARGE),
        (Turn("", delay=30), FailureReason.PRODUCER_TIMEOUT),
        (Turn("maximum context length is 5 tokens", status=400), FailureReason.PRODUCER_FAILED),
        (Turn("prompt is too long: 9 tokens > 5 maximum", status=400), FailureReason.PRODUCER_FAILED),
        (
            Turn(status=400, raw=b'{"error":{"code":"content_filter","message":"no"}}'),
            FailureReason.NO_ANSWER,
        ),
    ],
)
def test_the_models_own_faults_fail(chat: Chat, provider: str, turn: Turn, reason: FailureReason) -> None:
    made = chat([turn], provider=provider, timeout_seconds=1.0 if turn.delay else 60.0)
    assert made.candidate is None
    assert made.failure is not None
    assert made.failure.reason is reason
    assert json.loads(made.evidence["trajectory.json"])["steps"][0]["source"] == "user"
    assert len(made.stdout) <= 70_000


def test_a_refusal_is_shown(chat: Chat) -> None:
    made = chat([Turn("I will not.", finish="refusal")])
    assert (made.stdout, str(made.failure)) == ("I will not.", "the model refused to answer")


def test_calls_of_tools_nobody_offered_are_no_answer(chat: Chat) -> None:
    made = chat(lambda asked: Turn("", [ToolCall("shell", {})]))
    assert made.failure is not None
    assert made.failure.reason is FailureReason.NO_ANSWER


def test_lone_surrogates_are_refused(chat: Chat) -> None:
    body = b'{"choices":[{"message":{"content":"4\\ud800"},"finish_reason":"stop"}]}'
    made = chat([Turn(raw=body)])
    assert made.failure is not None
    assert made.failure.reason is FailureReason.CANDIDATE_REFUSED
    assert made.stdout == "4?"


def test_a_cut_reply_is_still_extracted_and_noted(chat: Chat) -> None:
    made = chat([Turn("42", finish="length")])
    assert made.candidate is not None
    assert (made.failure, made.metadata["finish_reason"]) == (None, "length")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```\na\n```\n```\nb\n```", FailureReason.AMBIGUOUS_ANSWER),
        ("```python\ndef root(", FailureReason.MALFORMED_ANSWER),
    ],
)
def test_code_that_is_not_one_block(chat: Chat, reply: str, reason: FailureReason) -> None:
    made = chat([Turn(reply)], HUMAN)
    assert made.failure is not None
    assert (made.failure.reason, made.stdout) == (reason, reply)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([Turn("temperature is not supported", status=400)], "answered 400: temperature is not supported"),
        ([Turn("42", faults=[Fault(status=500)] * 3)], "answered 500"),
        ([Turn("42", faults=[Fault(status=429)] * 3)], "answered 429"),
        ([Turn("42", faults=[Fault(drop=True)] * 3)], "cannot be reached"),
    ],
)
def test_faults_of_the_endpoint_are_the_hosts(chat: Chat, script: Script, message: str) -> None:
    with pytest.raises(InfrastructureError, match=message):
        chat(script)


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        (Turn("42", faults=[Fault(cut_after=30)] * 3), "broke off"),
        (Turn(raw=b"<html>"), "did not answer as expected"),
        (Turn(raw=b"{}"), "did not answer as expected: not in the shape of the chat API"),
    ],
)
def test_a_reply_that_had_begun_is_never_asked_for_again(chat: Chat, turn: Turn, message: str) -> None:
    production = chat([turn])
    assert production.fault is not None
    assert message in production.fault
    assert (production.candidate, production.usage["requests"]) == (None, 1)


@pytest.mark.parametrize("status", [403, 404])
def test_what_asking_again_would_not_change_is_the_operators(chat: Chat, status: int) -> None:
    with pytest.raises(ConfigError, match=f"answered {status}: no such model"):
        chat([Turn("no such model", status=status)])


def test_a_wrong_key_is_the_operators_and_not_repeated(chat: Chat) -> None:
    with pytest.raises(ConfigError, match="answered 401") as caught:
        chat([Turn("42")], key="sk-wrong-0123456789abcdef")
    assert "sk-wrong-0123456789abcdef" not in str(caught.value)


def test_an_error_that_repeats_the_key_does_not_leak_it(chat: Chat) -> None:
    with pytest.raises(InfrastructureError) as caught:
        chat([Turn("42", faults=[Fault(status=500, echo=True)] * 3)])
    assert KEY not in str(caught.value)


def test_nobody_there_is_the_hosts_even_when_time_runs_out_meanwhile(chat: Chat) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there, and not listening
        with pytest.raises(InfrastructureError, match="cannot be reached: ConnectError"):
            chat([], base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    with pytest.raises(InfrastructureError, match=r"within 2.5 seconds: 429"):
        chat([Turn("42", faults=[Fault(status=429, retry_after="30")])], timeout_seconds=2.5)


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(status=429, retry_after="0"), Fault(drop=True)])
def test_a_fault_that_passes_is_no_fault(chat: Chat, fault: Fault) -> None:
    made = chat([Turn("42", faults=[fault])])
    assert made.failure is None
    (exchange,) = json.loads(made.evidence["egress.json"])["exchanges"]
    assert len(exchange["retries"]) == 1


def test_a_budget_that_is_used_up_fails_the_attempt(chat: Chat) -> None:
    made = chat([Turn("42", delay=30)], attempt=BudgetLimits(seconds=0.5))
    assert made.failure is not None
    assert made.failure.reason is FailureReason.BUDGET_EXHAUSTED
    assert "attempt.seconds" in str(made.failure)


def test_the_tasks_own_time_counts(chat: Chat) -> None:
    source = row("short_answer", environment={"timeout_seconds": 0.5})
    made = chat([Turn("42", delay=30)], source)
    assert made.failure is not None
    assert made.failure.reason is FailureReason.PRODUCER_TIMEOUT
