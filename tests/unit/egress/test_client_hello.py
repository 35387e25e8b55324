"""The name a TLS client asks for, out of bytes nobody vouches for."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.egress.hellos import extension, hello, real_hello, records, sni, vector

from securebench.egress.client_hello import MAX_BYTES, ClientHelloReader
from securebench.egress.decisions import Reason, Refused

NAME = "api.example.com"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def read(data: bytes, step: int | None = None) -> str | None:
    """The name, from all bytes at once or from a few at a time."""
    reader = ClientHelloReader()
    for at in range(0, len(data), step or len(data) or 1):
        if (name := reader.feed(data[at : at + (step or len(data))])) is not None:
            return name
    return None


def reason(data: bytes) -> Reason:
    with pytest.raises(Refused) as refused:
        read(data)
    with pytest.raises(Refused) as again:
        read(data, 1)
    assert again.value.reason is refused.value.reason
    return refused.value.reason


@pytest.mark.parametrize("versions", [{}, {"newest": V12}, {"oldest": V13}])
@pytest.mark.parametrize("step", [None, 1, 7, 100])
def test_the_name_of_a_real_hello(versions: dict[str, ssl.TLSVersion], step: int | None) -> None:
    assert read(real_hello(NAME, **versions), step) == NAME


@pytest.mark.parametrize("size", [1, 2, 3, 5, 50, 200])
def test_a_real_hello_in_many_records(size: int) -> None:
    message = real_hello(NAME)[5:]
    assert read(records(message, size)) == NAME
    assert read(records(message, size), 3) == NAME


def test_bytes_after_the_hello_are_kept_as_they_are() -> None:
    reader = ClientHelloReader()
    early = b"\x17\x03\x03\x00\x04data"
    data = real_hello(NAME) + early
    assert reader.feed(data) == NAME
    assert bytes(reader.seen) == data


def test_a_hello_that_is_not_complete_says_nothing_yet() -> None:
    data = real_hello(NAME)
    for end in range(len(data)):
        assert read(data[:end]) is None


def test_the_case_of_the_name_does_not_matter() -> None:
    assert read(records(hello(sni(b"API.Example.com")))) == NAME


@pytest.mark.parametrize(
    "data, expected",
    [
        (real_hello(None), Reason.NO_SNI),
        (records(hello(None)), Reason.NO_SNI),
        (records(hello(b"")), Reason.NO_SNI),
        (records(hello(sni(b"a.example") + extension(0xFE0D, b"\0" * 20))), Reason.ENCRYPTED_HELLO),
        (records(hello(extension(0xFE0D, b"") + sni(b"a.example"))), Reason.ENCRYPTED_HELLO),
        (records(hello(sni(b"a.example") + extension(0xFFCE, b"x"))), Reason.ENCRYPTED_HELLO),
        (records(hello(sni(b"a.example", b"b.example"))), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example") + sni(b"b.example"))), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example") + extension(5, b"") + extension(5, b""))), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example", kind=1))), Reason.BAD_HELLO),
        (records(hello(sni(b""))), Reason.BAD_HELLO),
        (records(hello(extension(0, b""))), Reason.BAD_HELLO),
        (records(hello(extension(0, vector(b"")))), Reason.BAD_HELLO),
        (records(hello(extension(0, vector(b"\0" + vector(b"a.example")) + b"x"))), Reason.BAD_HELLO),
        (records(hello(sni(b"127.0.0.1"))), Reason.WRONG_SNI),
        (records(hello(sni(b"a.example."))), Reason.WRONG_SNI),
        (records(hello(sni(b"a.example\0.b.example"))), Reason.WRONG_SNI),
        (records(hello(sni("bücher.example".encode()))), Reason.WRONG_SNI),
        (records(hello(sni(b"a.example"), version=b"\x03\x00")), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example"), version=b"\x7f\x1c")), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example"), session=bytes(33))), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example"), suites=b"")), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example"), suites=b"\x13\x01\x13")), Reason.BAD_HELLO),
        (records(hello(sni(b"a.example")) + b"\x01"), Reason.BAD_HELLO),
        (records(b"\x02" + hello(sni(b"a.example"))[1:]), Reason.BAD_HELLO),
        (records(b"\x01\xff\xff\xff"), Reason.BAD_HELLO),
        (b"\x16\x03\x01\x00\x00", Reason.BAD_HELLO),
        (b"\x16\x03\x01\xff\xff", Reason.BAD_HELLO),
        (b"\x16\x03\x09\x00\x10", Reason.BAD_HELLO),
        (records(hello(sni(b"a.example")))[:20] + b"", None),
        (records(hello(sni(b"a.example"))[:10]) + b"\x17\x03\x01\x00\x01x", Reason.BAD_HELLO),
        (b"GET / HTTP/1.1\r\n\r\n", Reason.NOT_TLS),
        (b"CONNECT b.example:443 HTTP/1.1\r\n\r\n", Reason.NOT_TLS),
        (b"SSH-2.0-x\r\n", Reason.NOT_TLS),
        (b"\x80\x2e\x01\x03\x01", Reason.NOT_TLS),
        (b"\x16\x02\x00\x00\x10", Reason.NOT_TLS),
        (b"\0", Reason.NOT_TLS),
    ],
)
def test_every_other_hello_is_refused_with_its_reason(data: bytes, expected: Reason | None) -> None:
    if expected is None:
        assert read(data) is None
    else:
        assert reason(data) is expected


@pytest.mark.parametrize("cut", range(1, 30))
def test_lengths_that_disagree_are_refused(cut: int) -> None:
    """The same hello with its end cut off inside, the outer lengths made to fit."""
    body = hello(sni(b"api.example.com"))[4:-cut]
    assert reason(records(b"\x01" + vector(body, 3))) in (Reason.BAD_HELLO, Reason.NO_SNI)


def test_it_never_keeps_more_than_its_bound() -> None:
    reader = ClientHelloReader()
    trickle = records(b"\x01\x00\x40\x00" + bytes(0x4000), 1)  # ends after its bound: six bytes for each of the hello
    pieces = [trickle[at : at + 1000] for at in range(0, len(trickle), 1000)]
    with pytest.raises(Refused):
        list(map(reader.feed, pieces))
    assert len(reader.seen) <= MAX_BYTES + 1000


@given(st.binary(max_size=2000))
def test_any_bytes_give_a_name_a_wait_or_a_refusal(data: bytes) -> None:
    for start in (b"", b"\x16\x03\x01", b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03"):
        with contextlib.suppress(Refused):
            read(start + data, 100)


REAL = real_hello(NAME)


@settings(max_examples=500)
@given(st.lists(st.tuples(st.integers(0, len(REAL) - 1), st.integers(0, 255)), max_size=4), st.integers(1, 300))
def test_a_damaged_real_hello_gives_a_name_a_wait_or_a_refusal(damage: list[tuple[int, int]], step: int) -> None:
    data = bytearray(REAL)
    for at, value in damage:
        data[at] = value
    try:
        whole: str | Reason | None = read(bytes(data))
    except Refused as refused:
        whole = refused.reason
    try:
        pieces: str | Reason | None = read(bytes(data), step)
    except Refused as refused:
        pieces = refused.reason
    assert whole == pieces
