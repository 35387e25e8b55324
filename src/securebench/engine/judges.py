"""The model that judges prose, as the tester file names it."""

from __future__ import annotations

from securebench.egress.model_endpoint import ModelEndpoint
from securebench.tester_config import TesterConfig
from securebench.verifiers.judge.panel import Panel


def judge_of(config: TesterConfig) -> Panel | None:
    """None where none is named: what a model must judge is then `pending`."""
    if (judge := config.judge) is None:
        return None
    endpoint = ModelEndpoint(judge.base_url, judge.model, config.judge_key, judge.timeout_seconds, judge.max_tokens)
    return Panel(endpoint, judge.votes)
