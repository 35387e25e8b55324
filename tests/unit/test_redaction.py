"""Private values do not get into what the trusted side writes, and innocent text stays."""

from __future__ import annotations

import base64
import html
import json
import time
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from securebench.records.redaction import Redactor
from securebench.resources import REDACTED

SECRET = 'The "answer"/is <ü&42> ok'


def encodings(text: str) -> dict[str, str]:
    raw = text.encode()
    return {
        "plain": text,
        "upper case": text.upper(),
        "json": json.dumps(text),
        "json with unicode": json.dumps(text, ensure_ascii=False),
        "repr": repr(text),
        "html": html.escape(text),
        "url": quote(text),
        "url, all": quote(text, safe=""),
        "url, lower case": quote(text, safe="").lower(),
        "form": quote_plus(text),
        "hex": raw.hex(),
        "hex, upper case": raw.hex().upper(),
        "base64": base64.b64encode(raw).decode(),
        "base64, one on": base64.b64encode(b"x" + raw).decode(),
        "base64, two on": base64.b64encode(b"xy" + raw + b"z").decode(),
        "base64, url-safe": base64.urlsafe_b64encode(b"?" + raw).decode(),
    }


@pytest.mark.parametrize("name", encodings(SECRET))
def test_secret_is_scrubbed_in_every_encoding(name: str) -> None:
    encoded = encodings(SECRET)[name]
    scrubbed = Redactor([SECRET]).text(f"before {encoded} after")
    assert encoded not in scrubbed
    assert SECRET not in scrubbed
    assert REDACTED in scrubbed
    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")


@pytest.mark.parametrize(
    "secret",
    ["deepsecret", ["deepsecret"], {"a": [{"b": "deepsecret"}]}, "  deepsecret\n", [1, None, True, "deepsecret"]],
)
def test_secret_is_found_anywhere_in_a_private_value(secret: Any) -> None:
    assert Redactor([secret]).text("x deepsecret y") == f"x {REDACTED} y"


def test_longer_secret_is_scrubbed_whole_before_the_one_inside_it() -> None:
    assert Redactor(["secret", "secretary"]).text("secretary secret") == f"{REDACTED} {REDACTED}"


@pytest.mark.parametrize("secret", ["A", "42", "yes", "1234", 7, 3.5, "", "   ", None, True, False, [], {}])
def test_short_secret_does_not_blank_innocent_text(secret: Any) -> None:
    text = "A plain message: yes, 42 of 1234 tests passed (7 failed, 3.5 s, True)"
    assert Redactor([secret]).text(text) == text


@pytest.mark.parametrize("secret, text", [("A", "A"), ("42", "42"), (42, "42"), ("yes", " yes\n")])
def test_text_that_is_a_short_secret_is_scrubbed(secret: Any, text: str) -> None:
    assert Redactor([secret]).text(text) == REDACTED


def test_value_is_scrubbed_in_depth_with_its_keys() -> None:
    redact = Redactor(["deepsecret", 123456, 7])
    value = {
        "deepsecret": ["x deepsecret", {"n": 123456, "m": 7, "f": 1.5, "b": True, "z": None}],
        "t": ("deepsecret",),
    }
    assert redact.value(value) == {
        REDACTED: [f"x {REDACTED}", {"n": REDACTED, "m": 7, "f": 1.5, "b": True, "z": None}],
        "t": [REDACTED],
    }


@pytest.mark.parametrize("value", [MappingProxyType({"a": 1}), {1: {2}}, float("nan"), object(), b"x", ValueError("x")])
def test_any_value_becomes_plain_json(value: Any) -> None:
    json.dumps(Redactor(["deepsecret"]).value(value), allow_nan=False)


def test_nothing_to_hide_changes_nothing() -> None:
    assert Redactor([]).text("anything") == "anything"
    assert Redactor([]).value({"a": ["b"]}) == {"a": ["b"]}


@pytest.mark.parametrize("secret", ["İstanbul", "Straße", "ΑΒΓΔΕ", "ﬁve-ligature", "\ud800surrogate", "a\0b\x1bcd"])
def test_odd_characters_are_scrubbed_too(secret: str) -> None:
    assert Redactor([secret]).text(f"<{secret}>") == f"<{REDACTED}>"


def test_secret_that_looks_like_a_pattern_is_only_text() -> None:
    redact = Redactor([".*.*.*", "(a+)+$", "[redacted]"])
    assert redact.text("innocent text") == "innocent text"
    assert redact.text("see (a+)+$") == f"see {REDACTED}"


def test_large_secrets_and_many_of_them_cost_little() -> None:
    started = time.process_time()
    large = Redactor(["def test():\n    assert f(1) == 2\n" * 30_000])
    many = Redactor([[f"expected value {number}" for number in range(2000)]])
    for redact in (large, many):
        redact.text("innocent output\n" * 1000)
    assert time.process_time() - started < 3
    assert REDACTED in many.text("got expected value 1999")
