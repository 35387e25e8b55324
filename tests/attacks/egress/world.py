"""A small internet in a network namespace of its own: public and private addresses, a resolver, TLS servers.

Started by `lab.py` in fresh network and mount namespaces. All addresses lie on the loopback interface there, so nothing
can leave. Everything that reaches a server is written down as one JSON line in `hits`; the resolver logs to `dns.log`.
Ends when its standard input does.
"""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote_to_bytes, urlsplit

from tests.attacks.egress.authority import make_authority
from tests.attacks.egress.zone import serve_zone

PUBLIC, PUBLIC6, DEAD = "93.184.216.34", "2606:2800:220::34", "93.184.216.35"
PRIVATE, METADATA, LOOP = "10.0.0.5", "169.254.169.254", "127.0.0.1"
SINKS = (22, 8443)
UDP_PORT = 9999
RECORDS = {
    "allowed.lab.test": (PUBLIC, PUBLIC6),
    "v6.lab.test": (PUBLIC6,),
    "private.lab.test": (PRIVATE,),
    "meta.lab.test": (METADATA,),
    "loop.lab.test": (LOOP,),
    "loop6.lab.test": ("::1",),
    "mapped.lab.test": ("::ffff:127.0.0.1",),
    "mixed.lab.test": (PUBLIC, LOOP),
    "zero.lab.test": ("0.0.0.0",),
}
DNSMASQ = f"""
no-hosts
no-resolv
no-daemon
listen-address=127.0.0.1
bind-interfaces
cache-size=0
log-queries
pid-file
user=root
address=/lab.test/{PUBLIC}
address=/evil.test/{PUBLIC}
server=/rebind.test/127.0.0.1#5300
"""


class Book:
    """Where every server writes down what reached it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._lock = threading.Lock()

    def write(self, tag: str, **hit: object) -> None:
        with self._lock:
            self._file.write(json.dumps({"tag": tag, **hit}) + "\n")


def build_network(directory: Path) -> None:
    ip = shutil.which("ip") or "/usr/sbin/ip"
    subprocess.run([ip, "link", "set", "lo", "up"], check=True)
    for address in (PUBLIC, DEAD, PRIVATE, METADATA):
        subprocess.run([ip, "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    subprocess.run([ip, "addr", "add", f"{PUBLIC6}/128", "dev", "lo", "nodad"], check=True)
    files = {
        "resolv.conf": "nameserver 127.0.0.1\nsearch evil.test\noptions timeout:1 attempts:1\n",
        "hosts": "",
        "nsswitch.conf": "hosts: files dns\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text)
        subprocess.run(["mount", "--bind", directory / name, f"/etc/{name}"], check=True)


def start_resolver(directory: Path) -> subprocess.Popen[bytes]:
    records = "".join(f"host-record={name},{','.join(addresses)}\n" for name, addresses in RECORDS.items())
    (directory / "dnsmasq.conf").write_text(DNSMASQ + records)
    program = shutil.which("dnsmasq") or "/usr/sbin/dnsmasq"
    log = (directory / "dns.log").open("wb")
    return subprocess.Popen([program, f"--conf-file={directory / 'dnsmasq.conf'}"], stdout=log, stderr=log)


def _some(sock: socket.socket) -> bytes:
    """What comes next. Raises ConnectionError when nothing does any more."""
    if not (data := sock.recv(65536)):
        raise ConnectionError("the client is gone")
    return data


class HttpServer:
    """Keeps connections alive and believes Content-Length, as the servers do that smuggling works on."""

    def __init__(self, tag: str, book: Book) -> None:
        self._tag = tag
        self._book = book

    def __call__(self, sock: socket.socket, sni: str | None = None) -> None:
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                if not (more := sock.recv(65536)):
                    if data:
                        self._book.write(self._tag, sni=sni, line=data.decode("latin-1"))
                    return
                data += more
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            fields = [tuple(part.strip() for part in line.lower().partition(":")[::2]) for line in lines[1:]]
            named = dict(fields)
            body, data = self._body(sock, named, data)
            self._book.write(
                self._tag, sni=sni, line=lines[0], host=named.get("host"), fields=fields, body=body.decode("latin-1")
            )
            self._answer(sock, lines[0].split(" ")[1], {"tag": self._tag, "sni": sni, "host": named.get("host")})
            if named.get("connection") == "close":
                return

    def _body(self, sock: socket.socket, named: dict[str, str], data: bytes) -> tuple[bytes, bytes]:
        if "content-length" in named:
            length = int(named["content-length"])
            while len(data) < length:
                data += _some(sock)
            return data[:length], data[length:]
        if named.get("transfer-encoding") == "chunked":
            while not data.endswith(b"0\r\n\r\n"):
                data += _some(sock)
            return data, b""
        return b"", data

    def _answer(self, sock: socket.socket, target: str, seen: dict[str, object]) -> None:
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        match url.path:
            case "/slow":
                sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for number in range(int(query["n"])):
                    sock.sendall(b"6\r\npart%d\n\r\n" % number)
                    time.sleep(float(query["gap"]))
                sock.sendall(b"0\r\n\r\n")
            case "/big":
                size = int(query["n"])
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size // 65536):
                    sock.sendall(b"x" * 65536)
                sock.sendall(b"x" * (size % 65536))
            case "/redirect":
                sock.sendall(f"HTTP/1.1 302 Found\r\nLocation: {query['to']}\r\nContent-Length: 0\r\n\r\n".encode())
            case "/raw":
                sock.sendall(unquote_to_bytes(url.query))
                sock.shutdown(socket.SHUT_WR)
            case "/hold":
                sock.recv(1)
            case _:
                body = json.dumps(seen).encode()
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def serve_http(address: str, tag: str, book: Book, chain: tuple[Path, Path]) -> None:
    http = HttpServer(tag, book)

    def tls(sock: socket.socket) -> None:
        names: list[str | None] = []
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(*chain)
        own.sni_callback = lambda _socket, name, _context: names.append(name)
        with own.wrap_socket(sock, server_side=True) as secured:
            http(secured, names[0] if names else None)

    listen(address, 443, tls, book, tag)
    listen(address, 80, http, book, tag)


def listen(address: str, port: int, answer: Callable[[socket.socket], None], book: Book, tag: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, port), family=family, backlog=128)

    def one(sock: socket.socket) -> None:
        try:
            with sock:
                answer(sock)
        except (OSError, ValueError, IndexError, KeyError):
            pass  # whoever attacks may break the connection at any point

    def loop() -> None:
        while True:
            sock, _ = server.accept()
            book.write("tcp", port=port, address=address, server=tag)
            sock.settimeout(30)
            threading.Thread(target=one, args=(sock,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def serve_udp(address: str, book: Book) -> None:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, UDP_PORT))

    def loop() -> None:
        while True:
            data, peer = sock.recvfrom(2048)
            book.write("udp", data=data.decode("latin-1"), address=address)
            sock.sendto(data, peer)

    threading.Thread(target=loop, daemon=True).start()


def main(directory: Path) -> None:
    build_network(directory)
    book = Book(directory / "hits")
    chain = make_authority(directory)
    for address, tag in ((PUBLIC, "public"), (PUBLIC6, "public"), (METADATA, "metadata"), (PRIVATE, "private")):
        serve_http(address, tag, book, chain)
    for address in (LOOP, "::1"):
        serve_http(address, "loop", book, chain)
    for port in SINKS:
        listen(PUBLIC, port, lambda sock: sock.sendall(b"sink"), book, "sink")
    for address in (PUBLIC, PUBLIC6):
        serve_udp(address, book)
    serve_zone(("127.0.0.1", 5300), first=PUBLIC, flips={"loop": LOOP, "meta": METADATA})
    resolver = start_resolver(directory)
    try:
        while b"started" not in (directory / "dns.log").read_bytes():
            if resolver.poll() is not None:
                raise SystemExit((directory / "dns.log").read_text())
            time.sleep(0.01)
        (directory / "ready").touch()
        sys.stdin.buffer.read()
    finally:
        resolver.kill()
        resolver.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
