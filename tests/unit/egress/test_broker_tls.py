"""The broker sends a key only to a provider that proves who it is."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.upstreams import Asked, Send, agent_of


def _certificate(name: str, issuer=None, *, authority: bool = False):
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    signer, signer_key = (issuer[0].subject, issuer[1]) if issuer else (subject, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    return builder.sign(signer_key, hashes.SHA256()), key


@pytest.fixture
def contexts(tmp_path: Path):
    """The provider's side for a name, and a client side that knows the authority."""
    authority = _certificate("test authority", authority=True)
    client = ssl.create_default_context(cadata=authority[0].public_bytes(serialization.Encoding.PEM).decode())

    def server(name: str) -> ssl.SSLContext:
        certificate, key = _certificate(name, authority)
        file = tmp_path / f"{name}.pem"
        plain = serialization.NoEncryption()
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    return server, client


def _status(server: ssl.SSLContext, client: ssl.SSLContext | None) -> tuple[int, int]:
    async def main() -> tuple[int, int]:
        async with agent_of(tls=(server, client)) as agent:
            return (await agent.post()).status_code, len(agent.asked)

    return anyio.run(main)


def test_a_provider_with_the_right_certificate_is_asked(contexts) -> None:
    server, client = contexts
    assert _status(server("localhost"), client) == (200, 1)


def test_one_nobody_vouches_for_gets_nothing(contexts) -> None:
    server, _ = contexts
    assert _status(server("localhost"), None) == (502, 0)


def test_one_with_the_name_of_another_gets_nothing(contexts) -> None:
    server, client = contexts
    assert _status(server("api.openai.com"), client) == (502, 0)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"])
def test_tls_that_breaks_is_the_providers_fault_and_not_ours(contexts, before: bytes) -> None:
    server, client = contexts

    async def answer(asked: Asked, send: Send) -> None:
        if before:
            await send(before)
        await send.__self__.transport_stream.send(b"\x17\x03\x03\x00\x20" + b"?" * 32)  # no record of this session
        await anyio.sleep(5)

    async def main() -> None:
        async with agent_of(answer, tls=(server("localhost"), client)) as agent:
            reply = await agent.session.ask(agent.access, "/chat/completions", agent.body())
            assert reply.status == 502
            assert b"upstream_" in reply.body

    anyio.run(main)
