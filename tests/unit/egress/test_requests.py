"""A request for the proxy says what it wants in exactly one way, or is refused."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._domains import canonical_domain
from securebench.egress.decisions import Reason, Refused
from securebench.egress.requests import Ask, asked_for, read_ask, read_head


def ask(head: bytes) -> Ask:
    _, request, fields = read_head(head)
    return read_ask(request, fields)


def plain(
    target: bytes = b"http://a.example/x", *fields: bytes, method: bytes = b"GET", host: bytes = b"a.example"
) -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: " + host, *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def connect(target: bytes, *fields: bytes, version: bytes = b"1.1") -> bytes:
    return b"\r\n".join([b"CONNECT " + target + b" HTTP/" + version, *fields]) + b"\r\n\r\n"


def refusal(head: bytes) -> Reason:
    with pytest.raises(Refused) as refused:
        ask(head)
    return refused.value.reason


@pytest.mark.parametrize(
    "head",
    [
        connect(b"a.example:443", b"Host: a.example:443"),
        connect(b"A.Example:443", b"Host: a.eXample"),
        connect(b"a.example:443", b"Host: a.example:443", b"Proxy-Connection: keep-alive", b"User-Agent: x"),
        connect(b"a.example:443", version=b"1.0"),
        connect(b"a.example:443", b"Host: a.example:443", b"Proxy-Authorization: Basic eDp5"),
    ],
)
def test_a_tunnel_is_asked_for_by_name_and_port(head: bytes) -> None:
    assert ask(head) == Ask(True, "a.example", 443)


@pytest.mark.parametrize(
    "target, sent",
    [
        (b"http://a.example/", b"/"),
        (b"http://a.example", b"/"),
        (b"HTTP://A.example:80/x?y=http://b.example/", b"/x?y=http://b.example/"),
        (b"http://a.example?q", b"/?q"),
        (b"http://a.example//b.example/", b"//b.example/"),
        (b"http://a.example/a@b", b"/a@b"),
        (b"http://a.example/%2e%2e/\\", b"/%2e%2e/\\"),
    ],
)
def test_a_plain_request_is_sent_on_in_origin_form(target: bytes, sent: bytes) -> None:
    read = ask(plain(target))
    assert (read.tunnel, read.host, read.port, read.method, read.target) == (False, "a.example", 80, b"GET", sent)


def test_fields_of_the_hop_are_not_sent_on() -> None:
    fields = (b"Connection: close, X-Hop", b"X-Hop: 1", b"Proxy-Authorization: Basic eDp5", b"Proxy-Connection: x")
    more = (b"Keep-Alive: 5", b"TE: trailers", b"Expect: 100-continue", b"Accept: */*", b"Content-Length: 3")
    assert ask(plain(b"http://a.example/", *fields, *more, method=b"POST", host=b"A.Example:80")).fields == (
        (b"host", b"a.example"),
        (b"accept", b"*/*"),
        (b"content-length", b"3"),
        (b"connection", b"close"),
    )


def test_a_connection_field_cannot_hide_the_length_of_a_body() -> None:
    fields = ask(
        plain(b"http://a.example/", b"Connection: content-length", b"Content-Length: 3", method=b"POST")
    ).fields
    assert (b"content-length", b"3") in fields


def test_a_chunked_body_is_sent_on_chunked() -> None:
    fields = ask(plain(b"http://a.example/", b"Transfer-Encoding: Chunked", method=b"POST")).fields
    assert (b"transfer-encoding", b"chunked") in fields


BOTH = (b"Content-Length: 3", b"Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    "head, reason",
    [
        (connect(b"a.example", b"Host: a.example"), Reason.BAD_PORT),
        (connect(b"a.example:", b"Host: a.example"), Reason.BAD_PORT),
        (connect(b"http://a.example:443", b"Host: a.example"), Reason.BAD_NAME),
        (connect(b"u@a.example:443", b"Host: a.example"), Reason.BAD_NAME),
        (connect(b"[::1]:443", b"Host: a.example"), Reason.BAD_NAME),
        (connect(b"a.example:443/", b"Host: a.example"), Reason.BAD_PORT),
        (connect(b"*", b"Host: a.example"), Reason.BAD_NAME),
        (connect(b"a.example:443", b"Host: b.example:443"), Reason.HOST_MISMATCH),
        (connect(b"a.example:443", b"Host: a.example:80"), Reason.HOST_MISMATCH),
        (connect(b"a.example:443", b"Host: a.example."), Reason.HOST_MISMATCH),
        (connect(b"a.example:443", b"Host:"), Reason.HOST_MISMATCH),
        (connect(b"a.example:443", b"Host: a.example", b"Content-Length: 0"), Reason.FRAMING),
        (connect(b"a.example:443", b"Host: a.example", b"Transfer-Encoding: chunked"), Reason.FRAMING),
        (connect(b"a.example:443", b"Host: a.example", b"Upgrade: websocket"), Reason.UPGRADE),
        (connect(b"a.example:443"), Reason.MALFORMED),
        (connect(b"a.example:443", version=b"2.0"), Reason.MALFORMED),
        (connect(b"a.example:443", version=b"0.9"), Reason.MALFORMED),
        (plain(b"/"), Reason.NOT_PROXIED),
        (plain(b"*", method=b"OPTIONS"), Reason.NOT_PROXIED),
        (plain(b"https://a.example/"), Reason.NOT_PROXIED),
        (plain(b"ftp://a.example/"), Reason.NOT_PROXIED),
        (plain(b"//a.example/"), Reason.NOT_PROXIED),
        (plain(b"a.example:80"), Reason.NOT_PROXIED),
        (plain(b"http:/a.example/"), Reason.NOT_PROXIED),
        (plain(b"http:///"), Reason.BAD_NAME),
        (plain(b"http://u:p@a.example/"), Reason.BAD_NAME),
        (plain(b"http://u@a.example/"), Reason.BAD_NAME),
        (plain(b"http://a.example\\@b.example/"), Reason.BAD_NAME),
        (plain(b"http://b.example#@a.example/"), Reason.NOT_PROXIED),
        (plain(b"http://a.example/#x"), Reason.MALFORMED),
        (plain(b"http://a.example:0080/"), Reason.BAD_PORT),
        (plain(b"http://a.example:/"), Reason.BAD_PORT),
        (plain(b"http://127.0.0.1/"), Reason.BAD_NAME),
        (plain(host=b"b.example"), Reason.HOST_MISMATCH),
        (plain(host=b"a.example:443"), Reason.HOST_MISMATCH),
        (plain(host=b"a.example, b.example"), Reason.HOST_MISMATCH),
        (plain(host=b"u@a.example"), Reason.HOST_MISMATCH),
        (plain(b"http://a.example/", b"Host: a.example"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"Host: b.example"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"Upgrade: h2c"), Reason.UPGRADE),
        (plain(b"http://a.example/", b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), Reason.UPGRADE),
        (plain(b"http://a.example/", *BOTH), Reason.FRAMING),
        (plain(b"http://a.example/", *reversed(BOTH)), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: 3", b"Content-Length: 3"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: 3", b"Content-Length: 4"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: 3, 3"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: +3"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: -1"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: 0x3"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length:"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Content-Length: " + b"9" * 30), Reason.FRAMING),
        (plain(b"http://a.example/", b"Transfer-Encoding: gzip, chunked"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Transfer-Encoding: identity"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Transfer-Encoding: xchunked"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), Reason.FRAMING),
        (plain(b"http://a.example/", b"Transfer-Encoding : chunked"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"Transfer-Encoding: \x0bchunked"), Reason.FRAMING),
        (plain(b"http://a.example/", b" folded: 1"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"X: 1", b"\tfolded"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"X: 1\nContent-Length: 3"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"X: 1\rContent-Length: 3"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"X: \0"), Reason.MALFORMED),
        (plain(b"http://a.example/", b"no colon"), Reason.MALFORMED),
        (plain(b"http://a.example/", *[b"X: 1"] * 200), Reason.MALFORMED),
        (plain(b"http://a.example/ http://b.example/"), Reason.MALFORMED),
        (plain(b"http://a.example/\x7f"), Reason.MALFORMED),
        (b"\r\n" + plain(), Reason.MALFORMED),
        (b"GET http://a.example/\r\n\r\n", Reason.MALFORMED),
        (b"GET http://a.example/ HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n", Reason.FRAMING),
        (b"\r\n\r\n", Reason.MALFORMED),
        (b"\x16\x03\x01\r\n\r\n", Reason.MALFORMED),
    ],
)
def test_everything_else_is_refused_with_its_reason(head: bytes, reason: Reason) -> None:
    assert refusal(head) is reason


LINES = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"Host: a.example", b"Content-Length: 1", b"Transfer-Encoding: chunked", b"Upgrade: x"]),
    ),
    max_size=5,
)
FIRST = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"GET http://a.example/ HTTP/1.1", b"CONNECT a.example:443 HTTP/1.1"]),
    st.binary(max_size=30).map(lambda raw: b"CONNECT " + raw + b" HTTP/1.1"),
    st.binary(max_size=30).map(lambda raw: b"GET http://" + raw + b" HTTP/1.1"),
)


@given(FIRST, LINES)
def test_any_head_is_an_ask_in_form_or_refused(first: bytes, lines: list[bytes]) -> None:
    try:
        read = ask(b"\r\n".join([first, *lines]) + b"\r\n\r\n")
    except Refused:
        return
    assert canonical_domain(read.host) == read.host
    if not read.tunnel:  # what is sent on is what a strict reader would accept
        h11.Connection(h11.CLIENT).send(h11.Request(method=read.method, target=read.target, headers=list(read.fields)))


@pytest.mark.parametrize(
    "head, shown",
    [
        (connect(b"a.example:443", b"Host: a"), ("a.example", "443")),
        (connect(b"user:password@a.example:22", b"Host: a"), ("a.example", "22")),
        (plain(b"http://u:p@b.example:81/secret?token"), ("b.example", "81")),
        (plain(b"http://b.example/secret"), ("b.example", "")),
        (plain(b"/secret"), ("", "")),
        (connect(b"x" * 1000, b"Host: a"), ("x" * 255 + "~", "")),
        (connect(b"a\\b:1", b"Host: a"), ("a\\\\b", "1")),
    ],
)
def test_the_log_shows_what_was_asked_for_without_paths_and_passwords(head: bytes, shown: tuple[str, str]) -> None:
    assert asked_for(read_head(head)[1]) == shown
