"""For checkers: have something executed where the candidate's code may run, and get bytes back.

    from securebench import worker

    done = worker.run(["python3", "solve.py"], stdin=b"3 4\\n")
    assert done.returncode == 0 and done.stdout == b"7\\n"
    assert worker.call("solve.py", "add", 3, 4) == 7
    [page] = worker.http(["python3", "server.py"], [("GET", "/health")], port=8000)
    assert page.status == 200

What comes back was made by the candidate: compare it, never execute or unpickle it. The workspace there is a copy of
the captured one; changes made by one call are seen by the next, and by nobody else."""

import json
import os
from collections import namedtuple

from securebench.line import ask

Done = namedtuple("Done", "returncode signal timed_out stdout stderr")
Page = namedtuple("Page", "status headers body")


class WorkerError(RuntimeError):
    """The worker did not do what was asked of it; for the verdict that is the candidate's failure."""


def run(argv, stdin=b"", cwd=None, env=None, timeout=None):
    """Run a program to its end. `cwd` is relative to the workspace; `stdin` is bytes or text."""
    reply = _ask(
        "run", argv=[os.fsdecode(a) for a in argv], stdin=_data(stdin), cwd=cwd, env=env or {}, timeout=timeout
    )
    return Done(reply["returncode"], reply["signal"], reply["timed_out"], reply["stdout"], reply["stderr"])


def call(path, name, *args, timeout=None, **kwargs):
    """Call a function of a Python file of the workspace with plain data, and get plain data back."""
    reply = _ask("call", path=path, name=name, args=list(args), kwargs=kwargs, timeout=timeout)
    if reply["error"] is not None:
        raise WorkerError(reply["error"])
    return json.loads(reply["value"])


def http(argv, requests, port, ready_timeout=10.0, timeout=None):
    """Start a server, wait until it listens on loopback, send requests one after another, and stop it.

    A request is `(method, path)`, `(method, path, body)` or `(method, path, body, headers)`."""
    sent = [[*_request(*request)] for request in requests]
    reply = _ask("http", argv=list(argv), requests=sent, port=port, ready_timeout=ready_timeout, timeout=timeout)
    if reply["error"] is not None:
        raise WorkerError(reply["error"])
    return [Page(page["status"], dict(page["headers"]), page["body"]) for page in reply["pages"]]


def _request(method, path, body=b"", headers=None):
    return method, path, _data(body), dict(headers or {})


def _data(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def _ask(what, **request):
    try:
        reply = ask(dict(request, do=what))
    except (OSError, EOFError) as problem:
        raise WorkerError("the line to the worker is closed") from problem
    if "refused" in reply:
        raise WorkerError(reply["refused"])
    return reply
