"""B05: a host has one spelling; the check and the dialler cannot read different names. Ports likewise."""

from __future__ import annotations

import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import ALLOWED, away, body, proxy, raw, tls_get, tunnel
from tests.attacks.egress.lab import Lab, in_lab
from tests.attacks.egress.world import PUBLIC, PUBLIC6

PUBLIC_NUMBER = 0x5DB8D822
SPELLINGS = [
    PUBLIC,
    str(PUBLIC_NUMBER),
    hex(PUBLIC_NUMBER),
    "0135.0270.0330.042",
    "0x5d.0xb8.0xd8.0x22",
    "93.184.55330",
    "93.12113954",
    "0x5d.184.216.0x22",
    f"[{PUBLIC6}]",
    PUBLIC6,
    f"[::ffff:{PUBLIC}]",
    "allowed.lab.test.",
    "evilallowed.lab.test",
    "sub.allowed.lab.test",
    "allowed.lab.test.evil.test",
    "allowed.lab.test\0.evil.test",
    "evil.evil.test\0allowed.lab.test",
    "allowed.lab.test@x.evil.test",
    "allowed.lab.test:443@x.evil.test",
    "x.evil.test#allowed.lab.test",
    "x.evil.test/allowed.lab.test",
    "x.evil.test?.allowed.lab.test",
    "allowed%2elab.test",
    "%61llowed.lab.test",
    "allowed_.lab.test",
    "allowed.lab。test",
    "ａllowed.lab.test",
    "al\u017fowed.lab.test",
    "allowed..lab.test",
    ".allowed.lab.test",
    "*.lab.test",
    "allowed",
    "localhost",
    "-allowed.lab.test",
    "allowed.lab.test,x.evil.test",
]


@pytest.mark.parametrize("host", SPELLINGS)
@in_lab
async def test_no_other_spelling_connects(lab: Lab, host: str) -> None:
    before, asked = len(lab.hits()), len(lab.queries())
    async with proxy() as running:
        status, sock = await away(tunnel, running.port, f"{host}:443".encode(), ALLOWED)
        sock.close()
        line = b"GET http://" + host.encode() + b"/ HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n"
        reply = await away(raw, running.port, line)
    assert status in (400, 403)
    assert reply.startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
    assert len(running.reasons()) == 2
    assert len(lab.hits()) == before
    assert len(lab.queries()) == asked


@pytest.mark.parametrize("host", ["allowed.lab.test", "ALLOWED.lab.test", "Allowed.Lab.Test"])
@in_lab
async def test_the_canonical_name_connects_in_any_case(lab: Lab, host: str) -> None:
    async with proxy() as running:
        assert body(await away(tls_get, running.port, lab.ca, host))["tag"] == "public"


@pytest.mark.parametrize(
    "host",
    [*SPELLINGS[:6], f"[{PUBLIC6}]", "allowed.lab.test.", "allowed.lab.test@x.evil.test"],
)
@in_lab
async def test_control_where_names_are_taken_as_written_it_connects(lab: Lab, host: str) -> None:
    weak.takes_any_spelling()
    weak.allows_every_name()
    weak.vets_no_address()
    async with proxy(resolve=weak.look_up) as running:
        status, sock = await away(tunnel, running.port, f"{host}:443".encode(), ALLOWED)
        sock.close()
    assert status == 200


@pytest.mark.parametrize("host", ["evilallowed.lab.test", "sub.allowed.lab.test"])
@in_lab
async def test_control_where_ends_of_names_are_compared_it_connects(lab: Lab, host: str) -> None:
    weak.matches_the_end_of_names()
    async with proxy() as running:
        assert body(await away(tls_get, running.port, lab.ca, host))["sni"] == host


PORTS = ["22", "8443", "80", "0", "00443", "0443", "+443", "65979", "4294967739", "443 ", "443\0", "0x1bb", "443.0", ""]


@pytest.mark.parametrize("port", PORTS)
@in_lab
async def test_no_other_port_is_reached(lab: Lab, port: str) -> None:
    before = len(lab.hits())
    async with proxy() as running:
        status, sock = await away(tunnel, running.port, f"{ALLOWED}:{port}".encode(), ALLOWED)
        sock.close()
        for other in (port, "443"):
            line = f"GET http://{ALLOWED}:{other}/ HTTP/1.1\r\nHost: {ALLOWED}:{other}\r\n\r\n".encode()
            if other != "80":
                assert (await away(raw, running.port, line)).startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
    assert status in (400, 403)
    assert len(lab.hits()) == before


@pytest.mark.parametrize("port", ["22", "8443"])
@in_lab
async def test_control_where_ports_are_not_judged_they_are_reached(lab: Lab, port: str) -> None:
    weak.allows_every_name()
    weak.reads_no_hello()
    async with proxy() as running:
        status, sock = await away(tunnel, running.port, f"{ALLOWED}:{port}".encode(), ALLOWED)
        with sock:
            sock.sendall(b"hello")
            assert await away(sock.recv, 10) == b"sink"
    assert status == 200
