"""A small internet of values: names, addresses, and servers that live in this process and write down what reached them.

Nothing listens and nothing is dialled: whoever connects to an address gets one end of a pair of sockets."""

from __future__ import annotations

import datetime
import secrets
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from securebench.egress.decisions import Reason, Refused
from securebench.egress.wire import Wire

ALLOWED, OTHER = "allowed.example", "other.example"
PUBLIC, ELSEWHERE = "93.184.216.34", "93.184.216.35"
LOOP, METADATA, PRIVATE = "127.0.0.1", "169.254.169.254", "10.0.0.5"
ZONE: Mapping[str, tuple[tuple[str, ...], ...]] = {
    ALLOWED: ((PUBLIC,),),
    OTHER: ((ELSEWHERE,),),
    "meta.example": ((METADATA,),),
    "private.example": ((PRIVATE,),),
    "loop.example": ((LOOP,),),
    "loop6.example": (("::1",),),
    "mapped.example": (("::ffff:127.0.0.1",),),
    "mixed.example": ((PUBLIC, LOOP),),
    "nat64.example": (("64:ff9b::a9fe:a9fe",),),
    "zero.example": (("0.0.0.0",),),  # noqa: S104 — to be refused
    "flips.example": ((PUBLIC,), (LOOP,)),
}
"""The answers for a name, one after the other; the last one goes on for ever."""
PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A request that reached a server, or bytes that are none."""

    address: str
    port: int
    head: str
    sni: str | None = None


@dataclass(slots=True)
class World:
    """`gift` is what the allowed server gives, `prize` what every other one does; `note` is what a client wants out."""

    directory: Path
    gift: str = field(default_factory=lambda: f"gift-{secrets.token_hex(8)}")
    prize: str = field(default_factory=lambda: f"prize-{secrets.token_hex(8)}")
    note: str = field(default_factory=lambda: f"note{secrets.token_hex(8)}")
    asked: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    dialled: list[str] = field(default_factory=list)
    _answers: Counter[str] = field(default_factory=Counter)
    _open: list[socket.socket] = field(default_factory=list)

    async def resolve(self, name: str) -> tuple[str, ...]:
        """What a resolver says. Raises Refused."""
        self.asked.append(name)
        answers = ZONE.get(name.lower().rstrip("."))
        if answers is None:
            raise Refused(Reason.UNRESOLVABLE)
        self._answers[name.lower()] += 1
        return answers[min(self._answers[name.lower()], len(answers)) - 1]

    async def connect(self, address: str, port: int) -> Wire:
        """What a dialler gives."""
        self.dialled.append(address)
        near, far = socket.socketpair()
        far.settimeout(PATIENCE)
        self._open += (near, far)
        threading.Thread(target=self._serve, args=(far, address, port), daemon=True).start()
        return Wire(near)

    def escaped(self) -> bool:
        """Whether the note is anywhere but in the body of a request to the allowed server, or a name that nobody
        allowed was looked up."""
        return any(self.note in hit.head.partition("\r\n")[0] for hit in self.hits) or any(
            self.note in name or name != name.lower() for name in self.asked
        )

    def close(self) -> None:
        for near, far in zip(self._open[::2], self._open[1::2], strict=True):
            near.close()
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)  # its thread closes it

    def _serve(self, far: socket.socket, address: str, port: int) -> None:
        with far, suppress(OSError, ValueError):
            names: list[str | None] = []
            first = far.recv(4096, socket.MSG_PEEK)
            if first[:1] != b"\x16":
                self._talk(far, address, port, None)
                return
            self.hits.append(Hit(address, port, first.decode("latin-1")))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate(self.directory))
            context.sni_callback = lambda _sock, name, _context: names.append(name)
            with context.wrap_socket(far, server_side=True) as secured:
                self._talk(secured, address, port, names[0] if names else None)

    def _talk(self, far: socket.socket, address: str, port: int, sni: str | None) -> None:
        """Keeps the connection and believes Content-Length, as the servers do that smuggling works on."""
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                if not (more := far.recv(65536)):
                    if data:
                        self.hits.append(Hit(address, port, data.decode("latin-1"), sni))
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            text = head.decode("latin-1")
            self.hits.append(Hit(address, port, text, sni))
            fields = {name.strip().lower(): value.strip() for name, _, value in map(_field, text.split("\r\n")[1:])}
            length = int(fields.get("content-length", "0"))
            while len(data) < length and (more := far.recv(65536)):
                data += more
            data = data[length:]
            far.sendall(self._reply(address, text, fields, sni))
            if fields.get("connection") == "close":
                return

    def _reply(self, address: str, head: str, fields: Mapping[str, str], sni: str | None) -> bytes:
        path = head.split(" ")[1] if head.count(" ") > 1 else "/"
        if path.startswith("/redirect/"):
            where = f"http://{path.removeprefix('/redirect/')}/"
            return f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()
        names = (sni, fields.get("host", "").partition(":")[0])
        given = self.gift if address == PUBLIC and OTHER not in names else self.prize
        return f"HTTP/1.1 200 OK\r\nContent-Length: {len(given)}\r\n\r\n{given}".encode()


@contextmanager
def small_internet(directory: Path) -> Iterator[World]:
    world = World(directory)
    try:
        yield world
    finally:
        world.close()


def _field(line: str) -> tuple[str, str, str]:
    return line.partition(":")


@cache
def _made() -> tuple[bytes, bytes]:
    """A certificate for all names of the small internet, which signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "SecureBench small internet")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in ZONE]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return made.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)


def certificate(directory: Path) -> tuple[Path, Path]:
    """Files with the certificate and the key of the small internet's servers."""
    chain, key = directory / "small-internet.pem", directory / "small-internet.key"
    if not key.exists():
        made = _made()
        chain.write_bytes(made[0])
        key.write_bytes(made[1])
    return chain, key
