"""Who is let in: decided from the head of a request alone."""

from __future__ import annotations

import pytest

from securebench.serving.access import Gate, Refusal

TOKEN = "0123456789abcdef-token"
GOOD = [("host", "localhost:8765"), ("authorization", f"Bearer {TOKEN}")]


def _status(headers: list[tuple[str, str]], *names: str) -> int:
    try:
        Gate(TOKEN, names).check(headers)
    except Refusal as refusal:
        return 0 if TOKEN in str(refusal) else refusal.status
    return 200


@pytest.mark.parametrize("host", ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8765", "[::1]:1", "192.0.2.7"])
def test_addresses_and_localhost_are_names_of_the_server(host: str) -> None:
    assert _status([("host", host), GOOD[1]]) == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:8765", "127.0.0.1.evil.example", "0x7f.1", "127.1"),
        *("", ":80", "a@localhost", "localhost/", "localhost localhost", "[localhost]", "[evil", "localhost:http"),
        *("localhost\u3002", "l\u00f6calhost", "2130706433"),
    ],
)
def test_every_other_name_is_refused(host: str) -> None:
    assert _status([("host", host), GOOD[1]]) == 421


def test_missing_and_repeated_host_is_refused() -> None:
    assert _status([GOOD[1]]) == 421
    assert _status([GOOD[0], *GOOD]) == 421


def test_names_the_operator_allowed_are_accepted_letter_by_letter() -> None:
    assert _status([("host", "Bench.Example:443"), GOOD[1]], "bench.example.") == 200
    assert _status([("host", "x.bench.example"), GOOD[1]], "bench.example") == 421


@pytest.mark.parametrize(
    "field",
    [
        *(f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", "Bearer", "", TOKEN, f"Basic {TOKEN}"),
        *(f"Bearer {TOKEN} {TOKEN}", f"Bearer\t{TOKEN}", f"Bearer {TOKEN.upper()}", "Bearer \ud800"),
    ],
)
def test_anything_but_the_token_is_refused(field: str) -> None:
    assert _status([GOOD[0], ("authorization", field)]) == 401


def test_token_is_accepted_in_either_spelling_of_its_scheme_and_only_once() -> None:
    assert _status(GOOD) == 200
    assert _status([GOOD[0], ("authorization", f"bearer {TOKEN}")]) == 200
    assert _status([*GOOD, GOOD[1]]) == 401


def test_host_is_judged_before_the_token_is_looked_at() -> None:
    assert _status([("host", "evil.example")]) == 421
