"""Counts are read from replies of every kind, however they are cut into chunks, and from nowhere else."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.egress.broker import metering
from securebench.egress.broker.metering import Meter, Usage
from securebench.egress.providers import load_provider
from securebench.egress.providers.schema import Price

OPENAI, ANTHROPIC = load_provider("openai").usage, load_provider("anthropic").usage


def events(*values: object) -> bytes:
    return (
        b"".join(b"event: x\ndata: " + json.dumps(value).encode() + b"\n\n" for value in values) + b"data: [DONE]\n\n"
    )


RESPONSES = events(
    {"type": "response.created", "response": {"usage": None}},
    {"type": "response.output_text.delta", "delta": 'say "usage":{"input_tokens":9}'},
    {
        "type": "response.completed",
        "response": {
            "usage": {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}}
        },
    },
)
CHAT = events({"choices": [], "usage": None}, {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
MESSAGES = events(
    {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 30, "output_tokens": 1, "cache_read_input_tokens": 60}},
    },
    {"type": "content_block_delta", "delta": {"text": "x"}},
    {"type": "message_delta", "usage": {"output_tokens": 12}},
    {"type": "message_delta", "usage": {"output_tokens": 20, "cache_creation_input_tokens": 10}},
)


def measured(data: bytes, fields=OPENAI, *, cuts=(), streamed=True, price=None, asked=300) -> Usage:
    meter, begin = Meter(fields, streamed=streamed), 0
    for end in [*sorted(cuts), len(data)]:
        meter.feed(data[begin:end])
        begin = end
    return meter.finish(asked, price)


@pytest.mark.parametrize(
    "data, fields, cached", [(RESPONSES, OPENAI, 60), (CHAT, OPENAI, 0), (MESSAGES, ANTHROPIC, 60)]
)
@given(cuts=st.lists(st.integers(0, 400), max_size=8))
def test_a_stream_counts_the_same_however_it_is_cut(data: bytes, fields, cached: int, cuts: list[int]) -> None:
    usage = measured(data, fields, cuts=[min(cut, len(data)) for cut in cuts])
    assert usage == Usage(1, 100, cached, 20, None)


def test_a_stream_counts_the_same_byte_by_byte_and_without_its_last_line_end() -> None:
    for data in (RESPONSES, CHAT.removesuffix(b"\n\ndata: [DONE]\n\n")):
        assert measured(data, cuts=range(len(data))).tokens == 120


def test_line_ends_of_windows_count_too() -> None:
    assert measured(CHAT.replace(b"\n", b"\r\n")).tokens == 120


@pytest.mark.parametrize(
    "value, fields, expected",
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 3}}, OPENAI, (7, 0, 3)),
        ({"usage": {"input_tokens": 7, "output_tokens": 3}}, OPENAI, (7, 0, 3)),
        ({"usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 5}}, ANTHROPIC, (12, 5, 3)),
        (
            {"usage": {"prompt_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens": 0}},
            OPENAI,
            (9, 9, 0),
        ),
    ],
)
def test_a_whole_reply_counts(value: object, fields, expected: tuple[int, int, int]) -> None:
    usage = measured(json.dumps(value, indent=2).encode(), fields, streamed=False, cuts=[5, 9])
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == expected
    assert not usage.estimated


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"usage": None},
        {"usage": 5},
        {"data": {"usage": {"prompt_tokens": 1}}},
        {"choices": [{"usage": {"prompt_tokens": 1}}]},
    ],
)
def test_a_reply_without_usage_is_estimated_to_the_high_side(value: object) -> None:
    data = json.dumps(value).encode() + b" " * 300
    usage = measured(data, streamed=False, asked=900)
    assert usage.estimated
    assert usage.input_tokens == 300
    assert usage.output_tokens >= 100


@pytest.mark.parametrize("count", [-5, True, "7", 1.5, None, {}])
def test_counts_that_are_no_counts_are_not_taken(count: object) -> None:
    usage = measured(json.dumps({"usage": {"prompt_tokens": count, "completion_tokens": 3}}).encode(), streamed=False)
    assert (usage.input_tokens, usage.output_tokens) == (0, 3)


def test_costs_follow_the_prices_of_each_kind_of_token() -> None:
    price = Price(input=10.0, cached_input=1.0, cache_write=12.0, cache_write_long=20.0, output=50.0)
    counts = {
        "input_tokens": 1000,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 3000,
        "cache_creation": {"ephemeral_1h_input_tokens": 1000},
        "output_tokens": 100,
    }
    data = json.dumps({"usage": counts}).encode()
    usage = measured(data, ANTHROPIC, streamed=False, price=price)
    assert usage.input_tokens == 6000
    assert usage.cost_usd == pytest.approx((1000 * 10 + 2000 * 1 + 2000 * 12 + 1000 * 20 + 100 * 50) / 1e6)
    plain = measured(data, ANTHROPIC, streamed=False, price=Price(input=10.0, output=50.0))
    assert plain.cost_usd == pytest.approx((6000 * 10 + 100 * 50) / 1e6)


def test_sums_lose_their_cost_where_one_is_not_known() -> None:
    assert (Usage(1, 1, 0, 1, 0.5) + Usage(1, 1, 0, 1, 0.25)).cost_usd == 0.75
    total = Usage(1, 1, 0, 1, 0.5) + Usage(1, 2, 0, 1, None, estimated=True)
    assert (total.cost_usd, total.tokens, total.estimated) == (None, 5, True)


def test_a_line_without_end_is_forgotten_and_what_follows_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "MAX_LINE", 1000)
    long = b"data: " + b"x" * 5000
    assert measured(long + b"\n\n" + CHAT, cuts=range(0, 5000, 100)).tokens == 120
    assert measured(long, cuts=range(0, 5000, 100)).estimated


def test_reading_takes_time_in_proportion_to_the_bytes() -> None:
    """Small chunks of one long line, and lines full of the word it looks for."""

    def seconds(data: bytes, step: int) -> float:
        began = time.process_time()
        measured(data, cuts=range(step, len(data), step))
        return time.process_time() - began

    hostile = b'data: {"usage"' * 200_000
    assert seconds(b"data: " + b"x" * 4_000_000, 200) < 5
    assert seconds(hostile, 4096) < 5
    assert seconds(b'data: "usage"\n' * 200_000, 4096) < 8


@pytest.mark.parametrize("count", [10**20, 10**308, 10**3000], ids=["large", "larger", "largest"])
def test_counts_that_cannot_be_are_bounded_and_the_cost_stays_a_number(count: int) -> None:
    meter = Meter(OPENAI, streamed=False)
    meter.feed(json.dumps({"usage": {"prompt_tokens": count, "completion_tokens": count}}).encode())
    usage = meter.finish(10, Price(input=1_000_000, output=1_000_000))
    assert usage.input_tokens == usage.output_tokens == metering.MAX_COUNT
    assert json.loads(json.dumps(usage.as_json(), allow_nan=False))["cost_usd"] == 2.0 * metering.MAX_COUNT
