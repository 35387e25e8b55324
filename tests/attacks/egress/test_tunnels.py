"""B06: what is sent through a tunnel must be TLS for the host it was opened to."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import (
    ALLOWED,
    away,
    body,
    connect_head,
    everything,
    proxy,
    raw,
    soon,
    tls_get,
    tunnel,
)
from tests.attacks.egress.lab import Lab, in_lab
from tests.unit.egress.hellos import extension, hello, real_hello, records, sni

OTHER = "other.lab.test"
NAME = ALLOWED.encode()
HTTP = f"GET /echo HTTP/1.1\r\nHost: {OTHER}\r\nConnection: close\r\n\r\n".encode()
ALERT = b"\x15\x03\x03\x00\x02\x02\x31"
FIRST_BYTES = {
    "wrong name": (real_hello(OTHER), "wrong_sni"),
    "name of a subdomain": (real_hello(f"x.{ALLOWED}"), "wrong_sni"),
    "name with a trailing dot": (records(hello(sni(NAME + b"."))), "wrong_sni"),
    "an address for a name": (records(hello(sni(b"93.184.216.34"))), "wrong_sni"),
    "no name": (real_hello(None), "no_sni"),
    "two names": (records(hello(sni(NAME, OTHER.encode()))), "bad_hello"),
    "two name extensions": (records(hello(sni(NAME) + sni(OTHER.encode()))), "bad_hello"),
    "a hidden hello": (records(hello(sni(NAME) + extension(0xFE0D, bytes(64)))), "encrypted_hello"),
    "a hello with a tail": (records(hello(sni(NAME)) + hello(sni(OTHER.encode()))), "bad_hello"),
    "plain http": (HTTP, "not_tls"),
    "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", "not_tls"),
    "another connect": (b"CONNECT 10.0.0.5:443 HTTP/1.1\r\nHost: x\r\n\r\n", "not_tls"),
    "a hello of SSL 2": (b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10" + bytes(40), "not_tls"),
    "nothing": (b"", "not_tls"),
}


def send_first(port: int, data: bytes, size: int | None = None) -> bytes:
    status, sock = tunnel(port, f"{ALLOWED}:443")
    assert status == 200
    with sock:
        for at in range(0, len(data), size or len(data) or 1):
            sock.sendall(data[at : at + (size or len(data))])
        sock.shutdown(socket.SHUT_WR)
        return everything(sock)


@pytest.mark.parametrize("case", FIRST_BYTES)
@in_lab
async def test_anything_but_tls_to_the_host_itself_is_refused_and_not_a_byte_gets_out(lab: Lab, case: str) -> None:
    data, reason = FIRST_BYTES[case]
    before = len(lab.hits())
    async with proxy([ALLOWED, OTHER]) as running:
        reply = await away(send_first, running.port, data)
        assert reply == (b"" if reason == "not_tls" else ALERT)
        assert running.reasons() == [reason]
        if len(data) < 700:
            with suppress(OSError):  # refused before it was all sent
                await away(send_first, running.port, data, 16)
    assert set(running.reasons()) == {reason}
    assert len(lab.hits()) == before


@in_lab
async def test_a_client_learns_that_access_was_denied(lab: Lab) -> None:
    async with proxy([ALLOWED, OTHER]) as running:
        with pytest.raises(ssl.SSLError, match=r"(?i)access.denied"):
            await away(lambda: tls_get(running.port, lab.ca, sni=OTHER))


@in_lab
async def test_control_where_the_hello_is_not_read_another_name_is_served(lab: Lab) -> None:
    weak.reads_no_hello()
    async with proxy() as running:
        assert body(await away(lambda: tls_get(running.port, lab.ca, sni=OTHER)))["sni"] == OTHER


@pytest.mark.parametrize("case", ["plain http", "ssh", "another connect", "no name", "two names", "a hidden hello"])
@in_lab
async def test_control_where_the_hello_is_not_read_any_byte_gets_out(lab: Lab, case: str) -> None:
    weak.reads_no_hello()
    before = len(lab.hits("tcp"))
    async with proxy() as running:
        await away(send_first, running.port, FIRST_BYTES[case][0])
        assert (await running.ended())[0].bytes_up > 0
    assert soon(lambda: len(lab.hits("tcp")) > before)
    assert len(lab.hits("tcp")) == before + 1


@in_lab
async def test_control_where_hidden_names_are_ignored_such_a_hello_gets_out(lab: Lab) -> None:
    weak.ignores_hidden_names()
    before = len(lab.hits("tcp"))
    async with proxy() as running:
        await away(send_first, running.port, FIRST_BYTES["a hidden hello"][0])
        await running.ended()
    assert soon(lambda: len(lab.hits("tcp")) > before)
    assert len(lab.hits("tcp")) == before + 1


@in_lab
async def test_a_hello_in_small_pieces_is_still_read(lab: Lab) -> None:
    def get(port: int) -> bytes:
        status, sock = tunnel(port, f"{ALLOWED}:443")
        assert status == 200
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl.create_default_context(cafile=str(lab.ca)).wrap_bio(incoming, outgoing, server_hostname=ALLOWED)
        with sock:
            while True:
                try:
                    tls.do_handshake()
                    return b"done"
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        sock.sendall(bytes([byte]))
                    incoming.write(sock.recv(65536))

    async with proxy() as running:
        assert await away(get, running.port) == b"done"


@in_lab
async def test_bytes_before_the_tunnel_is_open_are_refused(lab: Lab) -> None:
    async with proxy() as running:
        reply = await away(raw, running.port, connect_head(f"{ALLOWED}:443") + real_hello(ALLOWED))
        assert reply.startswith(b"HTTP/1.1 400")
    assert running.reasons() == ["pipelined"]
