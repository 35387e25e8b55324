"""Where each target starts from when it has no corpus yet: a few sound inputs, so that its fuzzer is soon past the door."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator

from tests.fuzz.targets.answers import MARK
from tests.packs import VALID_ROWS

from securebench.records.dsse import Envelope
from securebench.verifiers.judge.question import verdict_words
from securebench.verifiers.rooms.codec import encode, frame

HEAD = "sha256:" + "0" * 64


def seeds() -> Iterator[tuple[str, bytes]]:
    """Target and input."""
    values = [None, True, -5, 2**200, 1.5, 1j, "a\u00e9", b"x", [1, [2]], (1,), {"k": {1, 2}}, frozenset({3}), range(3)]
    for value in values:
        yield "codec", encode(value)
    yield "frames", b"\x03" + b"".join(frame(encode(value)) for value in values[:5])
    yield "records", _chain(3)
    yield "records", _chain(2) + b'{"torn'
    yield "envelope", Envelope("application/x", b"{}", (("key", b"sig"),)).encode()
    yield "yaml", b"a: {b: [1, 2.5, null, true]}\nc: |\n  text\n'd': \"\\u00e9\"\n"
    for row in VALID_ROWS.values():
        yield "rows", json.dumps(row).encode() + b"\n"
    yield "samples", b'{"task_id": "c", "completion": "    return 1"}\n\n{"task_id": "t", "solution": null}\n'
    yield (
        "samples",
        b'{"instance_id": "p", "model_patch": "diff", "more": [1]}\r\n{"task_id": "c", "solution": "f = 1"}',
    )
    yield "samples", b'[{"instance_id": "p", "model_patch": "diff"},\n {"task_id": "t", "completion": "x"}]'
    yield "samples", b'{"p": {"model_patch": "diff", "instance_id": "p"}, "t": {"completion": null}}'
    yield (
        "samples",
        b'{"version": 2, "eval": {}, "samples": [{"id": "t", "epoch": 2, "output": {"choices": [1], "completion": "x"},'
        b'"scores": {"a": NaN}}, {"id": "c", "epoch": 1, "output": {"choices": []}}]}',
    )
    yield "samples", _log()
    yield "bundle", b"# v2 git bundle\n" + b"a" * 40 + b" refs/heads/main\n\nPACK\0\0\0\x02\0\0\0\0"
    yield "diff", b"one\ntwo\nthree\n\xff\xfeone\n2\nthree\nfour"
    yield "diff", b"q\0binary\xff\xfeother\0"
    yield "patch", b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    yield "patch", b"diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n"
    yield "proxy_head", b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"
    yield "proxy_head", b"POST http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n"
    yield "client_hello", b"\x40" + _hello(b"example.com")
    yield "seccomp", bytes([6, 1, 1]) + bytes(range(64))
    yield "answers", b"thinking\nAnswer: 1,234.5e3"
    yield "answers", b"**Answer:** {1/2, 3}"
    yield "answers", b"Answer: 2024-02-29"
    yield "vote", json.dumps({"verdict": verdict_words(MARK)["pass"]}).encode()


def _log() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b"{}")
        sample = {"id": "t", "epoch": 1, "output": {"choices": [{}], "completion": "x"}}
        archive.writestr("samples/t_epoch_1.json", json.dumps(sample))
    return data.getvalue()


def _chain(count: int) -> bytes:
    lines, previous = b"", HEAD
    for number in range(count):
        line = json.dumps({"n": number, "previous": previous}, separators=(",", ":")).encode() + b"\n"
        previous = "sha256:" + hashlib.sha256(line).hexdigest()
        lines += line
    return lines


def _hello(name: bytes) -> bytes:
    names = b"\0" + len(name).to_bytes(2, "big") + name
    server_name = len(names).to_bytes(2, "big") + names
    extensions = b"\0\0" + len(server_name).to_bytes(2, "big") + server_name
    body = (
        b"\x03\x03"
        + bytes(32)
        + b"\0"
        + b"\0\x02\x13\x01"
        + b"\x01\0"
        + len(extensions).to_bytes(2, "big")
        + extensions
    )
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message
