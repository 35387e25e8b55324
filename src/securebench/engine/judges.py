"""The model that judges prose, as the tester file names it."""

from __future__ import annotations

from securebench.egress.model_endpoint import ModelEndpoint
from securebench.tester_config import JudgeSection
from securebench.verifiers.judge.panel import Panel


def judge_of(section: JudgeSection | None, key: str | None) -> Panel | None:
    """None where none is named: what a model must judge is then `pending`."""
    if section is None:
        return None
    endpoint = ModelEndpoint(section.base_url, section.model, key, section.timeout_seconds, section.max_tokens)
    return Panel(endpoint, section.votes)
