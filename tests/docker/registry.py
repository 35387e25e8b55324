"""Registries on loopback: a real one with its own storage, and one that answers as it is told."""

from __future__ import annotations

import io
import json
import re
import shutil
import socket
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.docker.engine import docker, said

TOOLS = ("sh", "cat", "ls", "readlink", "env", "rm")


@dataclass(frozen=True)
class Registry:
    """A running registry."""

    host: str

    def push(self, name: str, answer: str) -> str:
        """Put a small image there whose /etc/answer says `answer`, and nothing of it here; its digest."""
        reference = f"{self.host}/{name}"
        made = docker("import", "-", reference, stdin=small_root(answer))
        assert made.returncode == 0, made.stderr
        # A second layer, so that there is something to count.
        container = said("create", "--pull=never", reference, "/bin/sh")
        said("cp", __file__, f"{container}:/second")
        said("commit", container, reference)
        said("rm", container)
        found = re.search(r"digest: (sha256:[0-9a-f]{64})", said("push", reference))
        assert found
        forget(reference)
        return found[1]


def forget(*references: str) -> None:
    for reference in references:
        docker("image", "rm", "--force", reference)


def small_root(answer: str) -> bytes:
    """A root file system with a shell and what the canary needs, of this host's own, as a tarball."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        libraries: set[str] = set()
        for tool in TOOLS:
            source = Path(shutil.which(tool) or "").resolve()
            archive.add(source, f"bin/{tool}")
            listing = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
            libraries |= set(re.findall(r"(/\S+\.so\S*)", listing))
        for library in sorted(libraries):
            archive.add(Path(library).resolve(), library.lstrip("/"))
        entry = tarfile.TarInfo("etc/answer")
        entry.size = len(answer)
        archive.addfile(entry, io.BytesIO(answer.encode()))
    return stream.getvalue()


@contextmanager
def real_registry(directory: Path) -> Iterator[Registry]:
    """A registry of its own, gone afterwards."""
    for _ in range(5):  # somebody else may take the port before it does
        host = f"127.0.0.1:{free_port()}"
        config = {
            "version": 0.1,
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": str(directory / "store")}},
            "http": {"addr": host},
        }
        (directory / "config.yml").write_text(json.dumps(config))
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(["docker-registry", "serve", directory / "config.yml"], stdout=log, stderr=log)
        try:
            if _answers(host, process):
                yield Registry(host)
                return
        finally:
            process.terminate()
            process.wait(120)
    raise AssertionError(f"the registry did not start: {(directory / 'log').read_text()}")


def _answers(host: str, process: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + 90
    while time.monotonic() < until and process.poll() is None:
        with suppress(urllib.error.URLError), urllib.request.urlopen(f"http://{host}/v2/", timeout=20):
            return process.poll() is None
        time.sleep(0.05)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Stub:
    """Answers every request with one status, after `delay` seconds, and counts them."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0.0
    host: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def stub_registry(stub: Stub) -> Iterator[Stub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            stub.requests.append(self.path)
            closing.wait(stub.delay)
            self.send_response(stub.status)
            for name, value in stub.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(stub.body)))
            self.end_headers()
            self.wfile.write(stub.body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is what some tests are about."""

    closing = threading.Event()
    with Server(("127.0.0.1", 0), Handler) as server:
        stub.host = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield stub
        finally:
            closing.set()
            server.shutdown()
            thread.join()
