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
        "hex, with spaces": raw.hex(" "),
        "hex, with colons": raw.hex(":").upper(),
        "hex, as shell escapes": "".join(f"\\x{byte:02x}" for byte in raw),
        "unicode escapes of every character": "".join(f"\\u{byte:04x}" for byte in raw),
        "json twice": json.dumps(json.dumps(text)),
        "json with unicode twice": json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False),
        "json with escaped slashes": json.dumps(text).replace("/", "\\/"),
        "unicode escape": text.encode("unicode_escape").decode(),
        "repr of bytes": repr(raw),
        "html without quotes": html.escape(text, quote=False),
        "html as templates write it": html.escape(text).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
        "html in ascii": html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
        "url twice": quote(quote(text, safe=""), safe=""),
        "url as browsers write it": quote(text, safe="!~*'()"),
        "utf-16 read as bytes": text.encode("utf-16-le").decode("latin-1"),
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


TEST_FILE = """import pytest
from solution import interval_union

def check():
    assert interval_union([(1, 3), (2, 5)]) == [(1, 5)]
    x = 1
    y = 2
    with pytest.raises(ValueError, match="intervals must not be empty"):
        interval_union([])
"""


@pytest.mark.parametrize("line", ["x = 1\n    y = 2\n    wit", *TEST_FILE.split("\n")])
def test_line_of_a_long_secret_is_one_too(line: str) -> None:
    line = line.strip()
    scrubbed = Redactor([TEST_FILE]).text(f"E   > {line} <")
    assert (scrubbed == f"E   > {REDACTED} <") == (len(line) >= 24)
    assert (scrubbed == f"E   > {line} <") == (len(line) < 24)


def test_of_a_long_secret_that_leaks_as_a_whole_nothing_is_left() -> None:
    for text in (TEST_FILE, json.dumps(TEST_FILE), TEST_FILE.encode().hex()):
        left = Redactor([TEST_FILE]).text(text).replace(REDACTED, "")
        assert len(left) < len(text) / 10
        assert not any(word in left for word in ("pytest", "solution", "check", "x = 1", "y = 2", "interval"))


def test_part_of_a_long_line_is_scrubbed_without_the_rest() -> None:
    secret = "".join(f"{number:05d}" for number in range(200))
    scrubbed = Redactor([secret]).text(f"it began with {secret[100:400]} and so on")
    assert len(scrubbed) < 110
    assert REDACTED in scrubbed


def test_line_the_public_lane_holds_too_is_no_secret() -> None:
    public = {"prompt": "Write it.\n    assert INTERVAL_union([(1, 3), (2, 5)]) == [(1, 5)]\nThank you."}
    redact = Redactor([TEST_FILE], [public])
    shown = "assert interval_union([(1, 3), (2, 5)]) == [(1, 5)]"
    assert redact.text(shown) == shown
    assert redact.text('with pytest.raises(ValueError, match="intervals must not be empty"):') == REDACTED


def test_many_parts_are_compared_with_the_public_lane_alike() -> None:
    lines = [f"a line that is long enough, number {number}" for number in range(500)]
    redact = Redactor(["\n".join(lines)], ["\n".join(lines[:250])])
    assert [redact.text(line) == line for line in lines] == [True] * 250 + [False] * 250


@pytest.mark.parametrize(
    "answer", ["green", "the one that is as green as a tree in the month of May, say those who know"]
)
def test_answer_that_stands_among_public_choices_is_still_a_secret(answer: str) -> None:
    redact = Redactor([answer], [{"choices": ["stone", answer, "seven"]}])
    assert redact.text(f"expected {answer}, got seven") == f"expected {REDACTED}, got seven"


def test_overlapping_and_touching_secrets_leave_nothing_between_them() -> None:
    redact = Redactor(["abcdefgh", "efghijkl", "mnopqrst"])
    assert redact.text("<abcdefghijklmnopqrst>") == f"<{REDACTED}>"


@pytest.mark.parametrize("text", ["1234567", "1,234,567", "1_234_567", "1234567.0"])
def test_number_is_scrubbed_as_it_may_be_printed(text: str) -> None:
    assert REDACTED in Redactor([1234567]).text(f"expected {text}!")
    assert "234" not in Redactor([1234567]).text(f"expected {text}!")
    assert Redactor([1234567]).value([1234567, 1234567.0, 12345678]) == [REDACTED, REDACTED, 12345678]


def test_long_key_of_a_private_object_is_a_secret_and_a_word_of_a_schema_is_not() -> None:
    redact = Redactor([{"accepted_answers": 1, "/srv/private/place/of/the/result.txt": 2}])
    assert redact.text("accepted_answers: none") == "accepted_answers: none"
    assert redact.text("no /srv/private/place/of/the/result.txt") == f"no {REDACTED}"


def test_final_sigma_is_a_sigma() -> None:
    assert Redactor(["ΟΔΥΣΣΕΥΣ"]).text("Οδυσσευς, ΟΔΥΣΣΕΥΣ1") == f"{REDACTED}, {REDACTED}1"


def scrub(redact: Redactor, pieces: list[str]) -> str:
    stream = redact.stream()
    return "".join(stream.feed(piece) for piece in pieces) + stream.finish()


def test_stream_shows_what_is_innocent_soon_and_holds_back_what_may_be_secret() -> None:
    stream = Redactor(["deepsecret", TEST_FILE]).stream()
    shown = stream.feed("a line of innocent text\n")
    assert len(shown) >= 17
    shown += stream.feed("and a deepsec")
    assert "deep" not in shown
    shown += stream.feed("ond thought, deepsecre")
    assert "deepsecond" in shown
    shown += stream.feed("t.") + stream.finish()
    assert shown == f"a line of innocent text\nand a deepsecond thought, {REDACTED}."


@pytest.mark.parametrize("pieces", [["4", "2"], [" ", "42", "\n"], ["42 "], [""], ["4", "2", "3"], ["  " * 600, "42"]])
def test_short_secret_is_all_of_a_stream_or_stays(pieces: list[str]) -> None:
    redact = Redactor([42, "deepsecret"])
    assert scrub(redact, pieces) == redact.text("".join(pieces))


def test_stream_begins_anew_after_its_end() -> None:
    stream = Redactor(["deepsecret", "A"]).stream()
    for _ in range(2):
        assert stream.feed("deepsecret") + stream.finish() == REDACTED
        assert stream.feed("A") + stream.finish() == REDACTED


def test_stream_holds_back_no_more_than_the_longest_spelling() -> None:
    redact = Redactor(["ü" * 20 + "ends"])
    stream = redact.stream()
    fed = shown = 0
    for piece in ["ü" * 100] * 200:
        fed += len(piece)
        shown += len(stream.feed(piece))
        assert fed - shown <= 24 * 2 * len(r"\u00ff")


def test_large_secret_and_large_text_cost_seconds_not_minutes() -> None:
    secret = "".join(f"    self.assertEqual(f({number}), {number * 7919})\n" for number in range(20_000))
    log = "".join(f"{number} innocent output of some % program & \\ more\n" for number in range(60_000))
    redact = Redactor([secret], [log[:10_000]])
    started = time.process_time()
    assert redact.text(log) == log
    assert scrub(redact, [log[at : at + 4096] for at in range(0, len(log), 4096)]) == log
    assert time.process_time() - started < 15  # two, on a machine with nothing else to do


def test_redactor_of_a_small_task_is_cheap() -> None:
    started = time.process_time()
    for _ in range(2000):
        redact = Redactor([["Oslo", "The city of Oslo"], 42], [{"question": "What is the capital of Norway?"}])
        redact.text("the answer is not one of the accepted ones")
        redact.value({"normalized": "bergen", "accepted": 2})
    assert time.process_time() - started < 2  # 0.1 ms each, with room for a slow machine


def test_large_secrets_and_many_of_them_cost_little() -> None:
    started = time.process_time()
    large = Redactor(["def test():\n    assert f(1) == 2\n" * 30_000])
    many = Redactor([[f"expected value {number}" for number in range(2000)]])
    for redact in (large, many):
        redact.text("innocent output\n" * 1000)
    assert time.process_time() - started < 3
    assert REDACTED in many.text("got expected value 1999")
