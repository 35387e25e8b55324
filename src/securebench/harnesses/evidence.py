"""What is kept of an attempt besides its candidate: the trajectory, what went through the ways out, the raw output."""

from __future__ import annotations

from typing import Any

from securebench import _json
from securebench.egress.broker import Exchange
from securebench.harnesses.agent import Agent, Invocation
from securebench.harnesses.base import ProducerRequest
from securebench.harnesses.outlets import Outlet
from securebench.harnesses.trajectory import Metrics, Step, Trajectory
from securebench.sandboxes.base import Output

TRAJECTORY, EGRESS, OUTPUT = "trajectory.json", "egress.json", "agent-output.jsonl"


def gather(
    request: ProducerRequest, agent: Agent, invocation: Invocation, stdout: Output, outlet: Outlet
) -> dict[str, bytes]:
    """Files by name. Only what there is: a command without ways out leaves none."""
    found: dict[str, bytes] = {}
    passed = outlet.evidence()
    if passed:
        found[EGRESS] = (_json.dumps(passed) + "\n").encode()
    if invocation.prompt is not None:
        found[OUTPUT] = stdout.data
    if invocation.prompt is not None or outlet.exchanges:
        found[TRAJECTORY] = trajectory(request, agent, invocation, stdout, outlet).encode(outlet.secrets)
    return found


def trajectory(
    request: ProducerRequest, agent: Agent, invocation: Invocation, stdout: Output, outlet: Outlet
) -> Trajectory:
    described = agent.describe(request)
    usage = outlet.usage
    extra: dict[str, Any] = {"output_truncated": True} if stdout.truncated else {}
    return Trajectory(
        session_id=f"{request.task_id}#{request.attempt}",
        agent=agent.name,
        version=str(described.get("version", "")),
        model=described.get("model"),
        steps=[Step("user", invocation.prompt or ""), *(agent.steps(stdout.data) or map(_step, outlet.exchanges))],
        total=Metrics(
            usage.get("input_tokens"), usage.get("output_tokens"), usage.get("cached_tokens"), usage.get("cost_usd")
        ),
        extra=extra,
    )


def _step(exchange: Exchange) -> Step:
    """For an agent that tells nothing of its own: what the broker saw of one request."""
    asked = f"{exchange.method} {exchange.path} for {exchange.model or 'no model'}"
    usage = exchange.usage
    return Step(
        "agent",
        f"{asked}: {exchange.status}{f', refused: {exchange.refused}' if exchange.refused else ''}",
        metrics=Metrics(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd),
    )
