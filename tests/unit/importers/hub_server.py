"""A small stand-in for the hub: it knows one data set at one commit, and can lie about its files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """`listed` is what the commit has, `served` what is given out instead; `asked` are the paths of all requests."""

    listed: Mapping[str, bytes]
    served: Mapping[str, bytes] = field(default_factory=dict)
    answers_with: str = COMMIT
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def info(self) -> bytes:
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": git_name(data)} | large(name, data)
            for name, data in self.listed.items()
        ]
        card = {"license": "cc-by-4.0"}
        return json.dumps({"id": "me/data", "sha": self.answers_with, "siblings": siblings, "cardData": card}).encode()


def git_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def large(name: str, data: bytes) -> dict[str, object]:
    """Parquet files are kept elsewhere by the hub, and named by another digest."""
    if not name.endswith(".parquet"):
        return {}
    return {"lfs": {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 1}}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(path)
            if path == f"/api/datasets/me/data/revision/{COMMIT}":
                self.reply(hub.info(), "application/json")
            elif path.startswith(f"/datasets/me/data/resolve/{COMMIT}/"):
                name = path.rpartition(f"{COMMIT}/")[2]
                data = {**hub.listed, **hub.served}.get(name)
                self.missing("EntryNotFound") if data is None else self.reply(data, "application/octet-stream")
            else:
                self.missing("RevisionNotFound" if "/me/data/" in path else "RepoNotFound")

        def reply(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            headers = {"Content-Type": kind, "Content-Length": str(len(data)), "X-Repo-Commit": COMMIT}
            headers["ETag"] = f'"{hashlib.sha256(data).hexdigest()}"'
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        def missing(self, code: str) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield hub
        finally:
            server.shutdown()
