"""One spelling of a host name gets through; every other way to write a host is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._domains import canonical_domain
from securebench.egress.decisions import Reason, Refused
from securebench.egress.names import requested_authority, requested_domain
from securebench.pack_schema import Domain, Schema

CANONICAL = [
    ("api.example.com", "api.example.com"),
    ("API.Example.COM", "api.example.com"),
    ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ("a.b", "a.b"),
    ("1.example", "1.example"),
    ("3com.example", "3com.example"),
    ("a--b.example", "a--b.example"),
    ("a" * 63 + ".example", "a" * 63 + ".example"),
    (".".join(["a" * 49] * 5) + ".de", ".".join(["a" * 49] * 5) + ".de"),
]
REFUSED = [
    "",
    ".",
    "localhost",
    "example.com.",
    ".example.com",
    "a..example.com",
    "-a.example.com",
    "a-.example.com",
    "a_b.example.com",
    "*.example.com",
    "example.com:443",
    "user@example.com",
    "user:pass@example.com",
    "example.com@evil.test",
    "example.com/",
    "example.com#.evil.test",
    "example.com?.evil.test",
    "example.com\\.evil.test",
    "example.com\0.evil.test",
    "example.com\0",
    "example%2ecom",
    "%65xample.com",
    " example.com",
    "example.com ",
    "example.com\n",
    "exa\tmple.com",
    "example\u3002com",  # an ideographic full stop, which IDNA takes for a dot
    "ｅxample.com",
    "bücher.example",
    "example.com\u200b",
    "\u212aey.example.com",  # the Kelvin sign, whose lower case is an ASCII k
    "a" * 64 + ".example",
    "a." * 126 + "bb",
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0x7f000001",
    "0x7f.0.0.1",
    "0x7f.0xa",
    "127.0.0.0x1",
    "0177.0.0.01",
    "1.2.3.4.5",
    "example.1",
    "example.0xff",
    "::1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "::ffff:127.0.0.1",
    "fe80::1%eth0",
    "2606:2800:220::34",
]


@pytest.mark.parametrize("text, name", CANONICAL)
def test_a_name_is_taken_in_lower_case(text: str, name: str) -> None:
    assert canonical_domain(text) == name
    assert requested_domain(text.encode()) == name


@pytest.mark.parametrize("text", REFUSED)
def test_every_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a host name"):
        canonical_domain(text)
    with pytest.raises(Refused) as refused:
        requested_domain(text.encode())
    assert refused.value.reason is Reason.BAD_NAME


@pytest.mark.parametrize("text, name", CANONICAL)
def test_a_pack_declares_names_in_their_canonical_form_only(text: str, name: str) -> None:
    accepted = Schema[str](Domain).validate(text, "row", lambda _: 1) == text
    assert accepted is (text == name)


@pytest.mark.parametrize("text", REFUSED)
def test_a_pack_cannot_declare_what_a_client_cannot_ask_for(text: str) -> None:
    assert isinstance(Schema[str](Domain).validate(text, "row", lambda _: 1), list)


@given(st.text())
def test_what_is_accepted_is_its_own_canonical_form(text: str) -> None:
    try:
        name = canonical_domain(text)
    except ValueError:
        return
    assert canonical_domain(name) == name == text.lower()
    assert name.isascii()


@pytest.mark.parametrize(
    "raw, expected",
    [
        (b"a.example:443", ("a.example", 443)),
        (b"A.EXAMPLE:443", ("a.example", 443)),
        (b"a.example:80", ("a.example", 80)),
        (b"a.example:65535", ("a.example", 65535)),
        (b"a.example:1", ("a.example", 1)),
    ],
)
def test_a_port_is_its_plain_digits(raw: bytes, expected: tuple[str, int]) -> None:
    assert requested_authority(raw) == expected


@pytest.mark.parametrize(
    "port",
    [
        b"",
        b"0",
        b"0443",
        b"00443",
        b"+443",
        b"-443",
        b" 443",
        b"443 ",
        b"443\x00",
        b"65536",
        b"65979",
        b"4294967739",
        b"0x1bb",
        b"443.0",
        b"4_43",
        "４４３".encode(),
        b"443:443",
        b"443/",
        b"1e2",
        b"https",
    ],
)
def test_no_other_spelling_of_a_port(port: bytes) -> None:
    with pytest.raises(Refused) as refused:
        requested_authority(b"a.example:" + port)
    assert refused.value.reason is Reason.BAD_PORT
    with pytest.raises(Refused):
        requested_authority(b"a.example:" + port, 80)


def test_without_a_port_there_must_be_a_default() -> None:
    assert requested_authority(b"a.example", 80) == ("a.example", 80)
    with pytest.raises(Refused):
        requested_authority(b"a.example")


@given(st.binary(max_size=300))
def test_any_bytes_are_a_name_and_a_port_or_refused(raw: bytes) -> None:
    try:
        host, port = requested_authority(raw, 80)
    except Refused:
        return
    assert canonical_domain(host) == host
    assert 1 <= port <= 65535
