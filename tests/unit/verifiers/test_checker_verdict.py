"""What a checker's run means: success is one explicit path."""

from __future__ import annotations

from typing import Any

import pytest

from securebench.verifiers.checkers.hall import Seen
from securebench.verifiers.checkers.verdict import judge_checker


def seen(**end: Any) -> Seen:
    return Seen(end={"exit": 0, "stdout": b"", "stderr": b"", "report": None} | end)


def test_script_without_a_reward_is_believed_by_its_exit_code() -> None:
    assert judge_checker("script", seen()).passed
    assert not judge_checker("script", seen(exit=1)).passed


def test_script_that_has_to_write_a_reward_and_does_not_passes_nobody() -> None:
    verdict = judge_checker("script", seen(), must_reward=True)
    assert (verdict.passed, verdict.note) == (False, "the checker wrote no reward")


@pytest.mark.parametrize("reward", [b"1", b"1.0\n", b" 1 "])
def test_reward_of_one_as_text_passes(reward: bytes) -> None:
    assert judge_checker("script", seen(reward=reward), must_reward=True).passed


@pytest.mark.parametrize("reward", [b"", b"0", b"0.99", b"2", b"1 0", b"true", b"nan", b"1e0"])
def test_any_other_text_does_not(reward: bytes) -> None:
    assert not judge_checker("script", seen(reward=reward)).passed


@pytest.mark.parametrize(
    "rewards", [b'{"reward": 1}', b'{"reward": 1.0, "accuracy": 0.4}', b'{"style": 1, "correct": 1.0}']
)
def test_rewards_of_one_as_json_pass(rewards: bytes) -> None:
    assert judge_checker("script", seen(rewards=rewards), must_reward=True).passed


@pytest.mark.parametrize(
    "rewards",
    [
        b"",
        b"1",
        b"{}",
        b"[1]",
        b'{"reward": 0}',
        b'{"reward": "1"}',
        b'{"reward": 0.5, "accuracy": 1}',
        b'{"style": 0, "correct": 1}',
        b'{"reward": NaN}',
        b'{"reward": 0, "reward": 1}',
    ],
)
def test_any_other_json_does_not(rewards: bytes) -> None:
    assert not judge_checker("script", seen(rewards=rewards)).passed


def test_text_and_json_have_to_agree_on_one() -> None:
    assert not judge_checker("script", seen(reward=b"1", rewards=b'{"reward": 0}')).passed
    assert not judge_checker("script", seen(reward=b"0", rewards=b'{"reward": 1}')).passed


def test_reward_does_not_outweigh_a_failed_exit() -> None:
    assert not judge_checker("script", seen(exit=1, reward=b"1"), must_reward=True).passed
