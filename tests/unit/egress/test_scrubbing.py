"""The key is taken out wherever it stands and however it is cut; nothing else is changed or kept back."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.egress.broker.scrubbing import Scrubber, scrubbed

KEY = "sk-sk-secret-9"  # begins with what it begins with again


def fed(data: bytes, cuts: list[int], key: str | None = KEY) -> bytes:
    scrubber, begin, out = Scrubber(key), 0, b""
    for end in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        out += scrubber.feed(data[begin:end])
        begin = end
    return out + scrubber.finish()


@given(
    st.lists(st.sampled_from([KEY, "sk-", "sk-sk-", "x", "\n", "s", KEY[:-1], KEY[1:]]), max_size=12),
    st.lists(st.integers(0, 120), max_size=10),
)
def test_any_cut_gives_the_same_as_the_whole(words: list[str], cuts: list[int]) -> None:
    data = "".join(words).encode()
    assert fed(data, cuts) == data.replace(KEY.encode(), b"[scrubbed]")


def test_what_cannot_be_the_beginning_of_the_key_goes_on_at_once() -> None:
    scrubber = Scrubber(KEY)
    assert scrubber.feed(b"data: x\n\n") == b"data: x\n\n"
    assert scrubber.feed(b"data: sk-s") == b"data: "
    assert scrubber.feed(b"ome") == b"sk-some"
    assert scrubber.finish() == b""


@pytest.mark.parametrize(
    "spelling",
    [
        lambda key: json.dumps(key)[1:-1],
        lambda key: quote(key, safe=""),
        lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    ],
)
def test_other_spellings_of_an_odd_key_are_taken_out_too(spelling) -> None:
    key = 'a/b"c\\d+e=f&g'
    assert b"[scrubbed]" in scrubbed(f"<{spelling(key)}>".encode(), key)


@pytest.mark.parametrize("key", [None, "ollama", "EMPTY", "none"])
def test_words_that_local_servers_take_for_keys_are_left_alone(key: str | None) -> None:
    assert scrubbed(b"ollama EMPTY none", key) == b"ollama EMPTY none"
