"""A package registry on loopback that the real npm client talks to, and packages that can be anything."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import shutil
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.unit.images.builders import archive, file

from securebench.harnesses.tools.description import Tool, machine_name

PACKAGE, NATIVE, NODE = "toy-cli", "toy-cli-native", "toy-node"


def need_npm() -> None:
    if shutil.which("npm") is None:
        message = "npm is not installed (scripts/ci-agents)"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(message)


def integrity(data: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def tarball(*members: bytes) -> bytes:
    return gzip.compress(archive(*members), mtime=0)


def program(says: str) -> bytes:
    """A package with a program, `bin/toy`, that prints one line."""
    manifest = json.dumps({"name": PACKAGE, "version": "1.0.0", "scripts": {"prepack": "touch /tmp/ran"}}).encode()
    body = f"#!/bin/sh\necho '{says}'\n".encode()
    return tarball(file("package/package.json", manifest), file("package/bin/toy", body, mode=0o755))


@dataclass
class Registry:
    """What is published, and how often each tarball was asked for."""

    address: str = ""
    published: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    tarballs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    slowness: float = 0.0

    def publish(self, name: str, version: str, data: bytes, *, says: str | None = None, **more: Any) -> None:
        """`says` is the integrity the registry claims, if not the right one."""
        path = f"/{name}/-/{version}.tgz"
        self.tarballs[path] = data
        dist = {"tarball": self.address + path, "integrity": integrity(data) if says is None else says}
        entry = {"name": name, "version": version, "dist": dist, **more}
        self.published.setdefault(name, {})[version] = entry
        self.tags.setdefault(name, {})["latest"] = version

    def fetches(self) -> int:
        return sum(count for path, count in self.asked.items() if path.endswith(".tgz"))


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urllib.parse.unquote(self.path.partition("?")[0])
            registry.asked[path] += 1
            name = path.removeprefix("/")
            if path in registry.tarballs:
                began = time.monotonic()
                while time.monotonic() < began + registry.slowness:  # which may be lifted meanwhile
                    time.sleep(0.05)
                self.reply(200, registry.tarballs[path])
            elif name in registry.published:
                document = {"name": name, "versions": registry.published[name], "dist-tags": registry.tags[name]}
                self.reply(200, json.dumps(document).encode())
            else:
                self.reply(404, b"{}")

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # a client that was killed
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Registry]:
    registry = Registry()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(registry))
    registry.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def toy_tool(**more: Any) -> Tool:
    """A tool whose package is the program itself; `builds` and `pinned` may be given."""
    build = {"machine": machine_name(), "libc": "any", "entry": ["bin/toy"]}
    value = {"tool": "toy", "package": PACKAGE, "version": "1.0.0", "builds": [build], **more}
    return Tool.model_validate_json(json.dumps(value))
