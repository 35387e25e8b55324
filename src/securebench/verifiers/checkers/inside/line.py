"""The line between a checker's processes and the one that holds the channel: one question, one answer, as JSON."""

import json
import socket

PLACE = "/tmp/.securebench"
SOCKET = PLACE + "/worker"


def ask(request):
    """Put one question and wait for its answer. Raises OSError or EOFError when nobody is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(SOCKET)
        send(line, request)
        return receive(line)


def send(line, value):
    data = json.dumps(value, default=lambda part: {"latin1": bytes(part).decode("latin-1")}).encode()
    line.sendall(len(data).to_bytes(4, "big") + data)


def receive(line):
    length = int.from_bytes(_exactly(line, 4), "big")
    return json.loads(_exactly(line, length), object_hook=_as_bytes)


def _as_bytes(value):
    return value["latin1"].encode("latin-1") if set(value) == {"latin1"} else value


def _exactly(line, count):
    parts = []
    while count:
        part = line.recv(min(count, 1 << 20))
        if not part:
            raise EOFError("the line was closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
