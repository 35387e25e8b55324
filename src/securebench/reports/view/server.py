"""The server of the viewer: HTTP/1.1 on loopback, one request a connection, everything bounded, nothing written."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from securebench import _json
from securebench.egress.crowd import Crowd
from securebench.egress.decisions import Refused
from securebench.egress.requests import END, MAX_HEAD, read_head
from securebench.egress.wire import Wire
from securebench.errors import SecureBenchError
from securebench.reports.view.door import NOT_FOUND, Door, Refusal
from securebench.reports.view.following import Follower
from securebench.reports.view.library import Library, Listed

if TYPE_CHECKING:
    from securebench.reports.view.rendering import Renderer

_VISITORS = 64
_PATIENCE = 10.0  # seconds for a request's head
_BEAT = 1.0  # between two looks at a run that is followed
_QUIET = 15.0  # after which the other side is shown that we are there
_HTML = "text/html; charset=utf-8"
_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
    ("Content-Security-Policy", "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 500: "Failed"}


def open_listener(port: int) -> socket.socket:
    """On loopback alone. Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_VISITORS)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve(listener: socket.socket, root: Path, token: str, trusted: Mapping[str, str]) -> None:
    """Answer until cancelled. `trusted` maps ids of keys to names."""
    viewer = _Viewer(Library(root), Door(token, listener.getsockname()[1]), trusted)
    crowd = Crowd(_VISITORS)
    async with anyio.create_task_group() as tasks:
        while True:
            await anyio.wait_readable(listener)
            await crowd.room()
            with suppress(OSError):
                connection, _ = listener.accept()
                crowd.enter()
                tasks.start_soon(viewer.receive, Wire(connection), crowd)


class _Viewer:
    def __init__(self, library: Library, door: Door, trusted: Mapping[str, str]) -> None:
        self._library = library
        self._door = door
        self._trusted = trusted
        self._renders = anyio.CapacityLimiter(1)
        self._renderer: Renderer | None = None

    async def receive(self, wire: Wire, crowd: Crowd) -> None:
        """One connection. Its failures stay with it: whatever a run holds, the other visitors are served."""
        try:
            with suppress(Exception):
                await self._visit(wire, crowd)
        finally:
            wire.close()
            crowd.leave()

    async def _visit(self, wire: Wire, crowd: Crowd) -> None:
        parts: tuple[str, ...] = ()
        with crowd.waiting() as turned_away:
            head = await _head(wire)
        if turned_away() or head is None:
            return
        shown = True
        try:
            _, request, fields = read_head(head)
            shown = request.method != b"HEAD"
            parts = self._door.admit(request.method, request.target, fields)
            await self._answer(wire, parts, shown)
        except Refused:
            await _reply(wire, 400, b"This is no request in the form of HTTP/1.1.\n", "text/plain")
        except Refusal as refusal:
            body = self._told(refusal) if parts else f"{refusal.text}\n".encode()
            await _reply(wire, refusal.status, body, _HTML if parts else "text/plain", shown)
        await wire.linger()

    async def _answer(self, wire: Wire, parts: tuple[str, ...], shown: bool) -> None:
        """What is at an address. Raises Refusal."""
        match parts:
            case ("run", key, "events") if shown:
                await self._stream(wire, self._run(key)[0])
            case _:
                # Making a report takes a core for seconds: one at a time, and the list does not wait for it.
                limiter = self._renders if parts[0] == "compare" or parts[-1] == "report" else None
                body = await to_thread.run_sync(self._made, parts, limiter=limiter, abandon_on_cancel=True)
                await _reply(wire, 200, body, _HTML, shown)

    def _made(self, parts: tuple[str, ...]) -> bytes:
        """Raises Refusal, also for a run on which we fail."""
        try:
            return self._page(parts)
        except Refusal:
            raise
        except Exception as error:  # a stranger's run must not end the server, whatever it found in us
            raise Refusal(500, f"This page could not be made, which is a fault of ours: {error!r}") from error

    def _page(self, parts: tuple[str, ...]) -> bytes:
        from securebench.reports.view.pages import choice_page, list_page, live_page

        match parts:
            case ("",):
                return list_page(self._library.root, self._library.runs()).encode()
            case ("run", key, "report"):
                return self._rendered(lambda made: made.report(self._run(key)[0]))
            case ("run", key, "live"):
                directory, listed = self._run(key)
                follower = Follower(directory)
                while follower.catch_up():
                    pass
                return live_page(listed, follower.as_json()).encode()
            case ("compare", key, ""):
                return choice_page(self._run(key)[1], self._library.runs()).encode()
            case ("compare", key, other):
                first, second = self._run(key)[0], self._run(other)[0]
                return self._rendered(lambda made: made.comparison(first, second))
        raise Refusal(*NOT_FOUND)

    def _run(self, key: str) -> tuple[Path, Listed]:
        """Raises Refusal."""
        found, listed = self._library.find(key), self._library.listed(key)
        if found is None or listed is None:
            raise Refusal(404, "This run is not here any more.")
        directory, why = found
        if why:
            raise Refusal(403, f"This run is not opened: {why}.")
        return directory, listed

    def _rendered(self, make: Callable[[Renderer], bytes]) -> bytes:
        """Raises Refusal where the run, or the two, cannot be shown."""
        from securebench.reports.view.rendering import Renderer

        self._renderer = self._renderer or Renderer(self._trusted)
        try:
            return make(self._renderer)
        except SecureBenchError as error:
            raise Refusal(404, str(error)) from error

    def _told(self, refusal: Refusal) -> bytes:
        from securebench.reports.view.pages import told_page

        return told_page("Not shown", refusal.text).encode()

    async def _stream(self, wire: Wire, directory: Path) -> None:
        """Server-sent events: the state whenever it changes, until it is finished or the other side goes."""
        await wire.send(_head_of(200, "text/event-stream; charset=utf-8"))
        follower, before, quiet = Follower(directory), "", 0.0
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                with suppress(OSError):
                    while await wire.receive():
                        pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            while not (before and follower.done):
                while await to_thread.run_sync(follower.catch_up):
                    pass
                state = _json.dumps(follower.as_json())
                quiet += _BEAT
                if state != before or quiet >= _QUIET:
                    await wire.send(f"data: {state}\n\n".encode())
                    before, quiet = state, 0.0
                if not follower.done:
                    await anyio.sleep(_BEAT)
            tasks.cancel_scope.cancel()


async def _head(wire: Wire) -> bytes | None:
    """The head of a request, its empty line included; None where it does not come, or has no end."""
    data = bytearray()
    with anyio.move_on_after(_PATIENCE):
        while END not in data:
            chunk = await wire.receive(MAX_HEAD)
            if not chunk or len(data) > MAX_HEAD:
                return None
            data += chunk
        return bytes(data[: data.find(END) + len(END)])
    return None


async def _reply(wire: Wire, status: int, body: bytes, kind: str, shown: bool = True) -> None:
    await wire.send(_head_of(status, kind, len(body)) + (body if shown else b""))


def _head_of(status: int, kind: str, length: int | None = None) -> bytes:
    fields = [("Content-Type", kind), *_HEADERS]
    fields += [] if length is None else [("Content-Length", str(length))]
    fields += [("Allow", "GET, HEAD")] if status == 405 else []
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"HTTP/1.1 {status} {_REASONS[status]}\r\n{lines}\r\n".encode("ascii")
