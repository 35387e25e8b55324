"""What rules accept, what they refuse, and that the log of it stays bounded and plain."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.egress.broker.exchange import Exchange, ExchangeLog
from securebench.egress.decisions import MAX_SHOWN, Decision, EgressLog, Kind, Reason, Refused, shown
from securebench.egress.proxy import proxy_environment
from securebench.egress.replies import refusal, tls_refusal
from securebench.egress.rules import EgressLimits, EgressRules
from securebench.errors import ConfigError

RULES = EgressRules(frozenset({"a.example"}))


def reason(rules: EgressRules, host: str, port: int, *, tunnel: bool) -> Reason | None:
    try:
        rules.check(host, port, tunnel=tunnel)
    except Refused as refused:
        return refused.reason
    return None


@pytest.mark.parametrize(
    "host, port, tunnel, expected",
    [
        ("a.example", 443, True, None),
        ("a.example", 80, False, None),
        ("a.example", 80, True, Reason.BAD_PORT),
        ("a.example", 443, False, Reason.BAD_PORT),
        ("a.example", 22, True, Reason.BAD_PORT),
        ("a.example", 8443, True, Reason.BAD_PORT),
        ("b.example", 443, True, Reason.NOT_ALLOWED),
        ("sub.a.example", 443, True, Reason.NOT_ALLOWED),
        ("xa.example", 443, True, Reason.NOT_ALLOWED),
        ("a.example.evil.test", 443, True, Reason.NOT_ALLOWED),
    ],
)
def test_exact_names_and_their_ports(host: str, port: int, tunnel: bool, expected: Reason | None) -> None:
    assert reason(RULES, host, port, tunnel=tunnel) is expected


def test_no_names_means_nothing_is_reached() -> None:
    assert reason(EgressRules(), "a.example", 443, tunnel=True) is Reason.NOT_ALLOWED


def test_a_port_can_be_taken_away() -> None:
    only_tls = EgressRules(frozenset({"a.example"}), ports=frozenset({443}))
    assert reason(only_tls, "a.example", 80, tunnel=False) is Reason.BAD_PORT


@pytest.mark.parametrize("domain", ["A.example", "*.example", "127.0.0.1", "a.example.", "example", ""])
def test_rules_take_canonical_names_only(domain: str) -> None:
    with pytest.raises(ConfigError, match="allowed domain"):
        EgressRules(frozenset({domain}))


def test_a_private_domain_must_be_allowed_too() -> None:
    with pytest.raises(ConfigError, match="name it in both lists"):
        EgressRules(frozenset({"a.example"}), private_domains=frozenset({"b.example"}))


@pytest.mark.parametrize("ports", [{22}, {80, 8080}])
def test_no_other_ports_can_be_configured(ports: set[int]) -> None:
    with pytest.raises(ConfigError, match="the ports 80"):
        EgressRules(frozenset({"a.example"}), ports=frozenset(ports))


@pytest.mark.parametrize(
    "limits", [{"open": 0}, {"bytes": -1}, {"connections": -1}, {"seconds": 0.0}, {"idle_seconds": float("nan")}]
)
def test_limits_are_positive(limits: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="positive"):
        EgressLimits(**limits)  # type: ignore[arg-type]


def test_the_log_keeps_the_first_and_counts_all() -> None:
    now = [10.0]
    log = EgressLog(limit=2, clock=lambda: now[0])
    for host in ("a", "b", "c"):
        now[0] += 1
        log.add(Decision(Kind.REFUSED, Reason.NOT_ALLOWED, host, "443"))
    log.add(Decision(Kind.ENDED, Reason.CLOSED, "a", "443", 1, 2, 3.00049, "1.1.1.1"))
    shown = [(entry["at"], entry["host"], entry["kind"]) for entry in log.as_json()]
    assert shown == [(1.0, "a", "refused"), (2.0, "b", "refused"), (3.0, "a", "ended")]
    assert log.dropped == 1
    assert log.count(Kind.REFUSED) == log.count(Kind.REFUSED, Reason.NOT_ALLOWED) == 3
    assert log.summary() == {"counts": {"ended": {"closed": 1}, "refused": {"not_allowed": 3}}, "kept": 3, "dropped": 1}
    assert json.loads(json.dumps(log.as_json())) == log.as_json()


@given(st.one_of(st.binary(), st.text()))
def test_what_a_client_wrote_is_shown_in_bounded_printable_ascii(raw: bytes | str) -> None:
    text = shown(raw)
    assert len(text) <= MAX_SHOWN
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize("reason", Reason)
def test_a_refusal_is_a_short_plain_reply_that_never_asks_for_a_login(reason: Reason) -> None:
    head, _, body = refusal(reason).partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 ", b"HTTP/1.1 408 ", b"HTTP/1.1 502 ", b"HTTP/1.1 504 "))
    assert f"Content-Length: {len(body)}".encode() in head
    assert reason.value.encode() in body
    assert len(body) < 300
    assert len(tls_refusal(reason)) in (0, 7)


def test_programs_find_the_proxy_by_the_usual_variables() -> None:
    environment = proxy_environment(3128)
    assert environment["HTTPS_PROXY"] == environment["http_proxy"] == "http://127.0.0.1:3128"
    assert "127.0.0.1" in environment["NO_PROXY"].split(",")


def test_requests_that_cost_nothing_do_not_crowd_out_those_of_models() -> None:
    log = ExchangeLog(limit=2)
    for number in range(5):
        log.add(Exchange(number, 0.0, "openai", "GET", "/models"))
        log.add(Exchange(number, 0.0, "openai", "POST", "/chat/completions", refused="model_not_allowed"))
    log.add(Exchange(9, 0.0, "openai", "POST", "/chat/completions", model="gpt-5"))
    assert [exchange.model for exchange in log.kept] == [None] * 4 + ["gpt-5"]
    assert log.dropped == 6
