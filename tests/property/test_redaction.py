"""Secrets never survive, whatever they are and wherever they stand; innocent text does."""

from __future__ import annotations

import base64
import html
import json
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from securebench.records.redaction import MIN_LENGTH, Redactor
from securebench.resources import REDACTED

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=MIN_LENGTH, max_size=30).filter(
    lambda text: len(text.strip()) >= MIN_LENGTH
)
SURROUNDINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)

ENCODERS = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps(text)[1:-1],
    "json with unicode": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "html": html.escape,
    "url": quote,
    "url, all": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "hex": lambda text: text.encode().hex(),
    "hex, with spaces": lambda text: text.encode().hex(" "),
    "base64": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "json twice": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
}


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
@settings(max_examples=100)
@given(secret=SECRETS, before=SURROUNDINGS, after=SURROUNDINGS)
def test_secret_never_survives_in_any_encoding(encode: Any, secret: str, before: str, after: str) -> None:
    stripped = secret.strip()
    encoded = encode(stripped)
    assume(encoded.lower() not in REDACTED)
    scrubbed = Redactor([{"deep": [secret]}]).text(before + encoded + after)
    assert encoded not in scrubbed


@settings(max_examples=200)
@given(secret=SECRETS, before=st.binary(max_size=8), after=st.binary(max_size=8), safe=st.booleans())
def test_secret_never_survives_inside_base64(secret: str, before: bytes, after: bytes, safe: bool) -> None:
    raw = secret.strip().encode()
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    scrubbed = Redactor([secret]).text(encode(before + raw + after).decode())
    assert REDACTED in scrubbed
    for offset in range(4):
        for piece in scrubbed.split(REDACTED):
            text = piece.rstrip("=")[offset:]
            decoded = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_")[: len(text) // 4 * 4])
            assert raw not in decoded


@settings(max_examples=100)
@given(st.lists(SECRETS, min_size=1, max_size=5), st.lists(SURROUNDINGS, min_size=6, max_size=6))
def test_no_secret_of_many_survives_whole_in_text_that_holds_them_all(secrets: list[str], gaps: list[str]) -> None:
    stripped = [secret.strip() for secret in secrets]
    assume(not any(secret.lower() in REDACTED for secret in stripped))
    text = "".join(gap + "\n" + secret for gap, secret in zip(gaps, stripped, strict=False))
    scrubbed = Redactor(secrets).text(text)
    for piece in scrubbed.split(REDACTED):
        assert not any(secret in piece for secret in stripped)


@settings(max_examples=200)
@given(
    secrets=st.lists(
        st.text(max_size=MIN_LENGTH - 1) | st.integers(-999, 9999) | st.booleans() | st.none(), max_size=4
    ),
    text=SURROUNDINGS,
)
def test_short_secrets_never_blank_a_longer_text(secrets: list[Any], text: str) -> None:
    assume(len(text.strip()) >= MIN_LENGTH)
    assert Redactor(secrets).text(text) == text


@settings(max_examples=100)
@given(
    secrets=st.lists(st.text(), max_size=3),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    ),
)
def test_any_value_becomes_plain_json(secrets: list[str], value: Any) -> None:
    json.dumps(Redactor(secrets).value(value), allow_nan=False)


def _cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@settings(max_examples=300)
@given(
    secrets=st.lists(st.text('abAB\n"\\&/ü ', min_size=1, max_size=70) | st.integers(0, 10**7), min_size=1, max_size=4),
    encode=st.sampled_from([*ENCODERS.values()]),
    gaps=st.lists(st.text('abAB\n"\\&/ü ', max_size=20), min_size=5, max_size=5),
    places=st.lists(st.integers(0, 10**6), max_size=12),
)
def test_any_chunking_of_a_stream_gives_what_the_whole_gives(
    secrets: list[Any], encode: Any, gaps: list[str], places: list[int]
) -> None:
    redact = Redactor(secrets)
    text = "".join(gap + encode(str(secret)) for gap, secret in zip(gaps, secrets, strict=False)) + gaps[-1]
    stream = redact.stream()
    assert "".join(map(stream.feed, _cut(text, places))) + stream.finish() == redact.text(text)
    assert "".join(map(stream.feed, text)) + stream.finish() == redact.text(text)


@settings(max_examples=200)
@given(
    lines=st.lists(st.text("abcdefgh =().,", max_size=60) | st.text("abcdef", min_size=24), min_size=1, max_size=12),
    chosen=st.integers(0, 11),
    public=st.text("abcdefgh =().,", max_size=40),
)
def test_no_long_line_of_a_long_secret_survives(lines: list[str], chosen: int, public: str) -> None:
    line = lines[chosen % len(lines)].strip()
    if len(line) < 24:
        return
    scrubbed = Redactor(["\n".join(lines)], [public]).text(f"> {line} <")
    assert line not in scrubbed or line in public


@settings(max_examples=200)
@given(secrets=st.lists(st.text("ab\n", max_size=60), max_size=3), text=st.text("ab\n", max_size=300))
def test_what_is_no_secret_stays(secrets: list[str], text: str) -> None:
    """Every blanked stretch is covered by texts of the secrets; the rest is there in its order."""
    scrubbed = Redactor(secrets).text(text)
    if scrubbed != REDACTED:
        rest = iter(text)
        assert all(char in rest for char in scrubbed.replace(REDACTED, ""))
