"""Hostile clients of `securebench serve`: malformed, oversized, smuggled, flooding and slow requests.

After each of them the server answers an honest client."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import pytest
from tests.e2e.served import RIGHT, TOKEN, Served, served
from tests.e2e.workbench import need_bubblewrap

AUTH = f"Authorization: Bearer {TOKEN}\r\n"
HEAD = f"Host: localhost\r\n{AUTH}"
TYPE = "Content-Type: application/json\r\n"
SLOW = "import time\ndef sq(x):\n    time.sleep(6)\n    return x * x\n"
ONE = json.dumps({"task": "t1", "candidate": "Answer: 42"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    need_bubblewrap()
    tight = ("--connections", "12", "--max-body", "1", "--max-batch", "3", "--queue", "4", "--timeout", "30")
    with served(tmp_path_factory.mktemp("tight"), *tight) as running:
        yield running
        assert running.stop() == 0
        assert "internal error" not in running.said()


@pytest.fixture(autouse=True)
def _still_answers(server: Served) -> Iterator[None]:
    yield
    assert server.grade("t1", "Answer: 42").json()["passed"]


def post(body: str, *fields: str, path: str = "/v1/grade", head: str = HEAD) -> bytes:
    length = f"Content-Length: {len(body.encode())}\r\n" if not any("ength" in one for one in fields) else ""
    return f"POST {path} HTTP/1.1\r\n{head}{TYPE}{length}{''.join(fields)}\r\n{body}".encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1]) if answer else 0


MALFORMED = {
    "nothing of HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no version": b"GET /readyz\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": f"GET /readyz HTTP/1.1\r\n{AUTH}\r\n".encode(),
    "two hosts": f"GET /readyz HTTP/1.1\r\nHost: localhost\r\n{HEAD}\r\n".encode(),
    "space before the colon": f"GET /readyz HTTP/1.1\r\n{HEAD}X : y\r\n\r\n".encode(),
    "NUL in a field": f"GET /readyz HTTP/1.1\r\n{HEAD}X: a\0b\r\n\r\n".encode(),
    "negative length": post(ONE, "Content-Length: -1\r\n"),
    "two lengths": post(ONE, "Content-Length: 5\r\nContent-Length: 6\r\n"),
    "length and chunks": post(ONE, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    "unknown coding": post(ONE, "Transfer-Encoding: gzip, chunked; length\r\n"),
    "chunk that is none": post("zz\r\nabc", "Transfer-Encoding: chunked\r\nX-Length: 0\r\n"),
    "endless head": f"GET /readyz HTTP/1.1\r\n{HEAD}X: {'y' * 100_000}".encode(),
    "many fields": f"GET /readyz HTTP/1.1\r\n{HEAD}{'X: y' * 20_000}".encode(),
}


@pytest.mark.parametrize("attack", MALFORMED)
def test_what_is_no_request_is_refused_and_its_connection_ended(server: Served, attack: str) -> None:
    answer = server.raw(MALFORMED[attack])
    assert status(answer) in (400, 408, 413, 421, 431, 501, 505), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1
    assert TOKEN.encode() not in answer


def test_a_head_that_is_too_large_is_refused_also_where_it_comes_all_at_once(server: Served) -> None:
    for size, expected in ((1000, 200), (40_000, 431)):
        answer = server.raw(f"GET /readyz HTTP/1.1\r\n{HEAD}X: {'y' * size}\r\nConnection: close\r\n\r\n".encode())
        assert status(answer) == expected


def test_second_request_hidden_in_the_first_is_not_answered(server: Served) -> None:
    """Whatever is ambiguous about where a request ends, ends the connection. Control: two plain ones are answered."""
    hidden = f"GET /v1/tasks HTTP/1.1\r\n{HEAD}\r\n"
    framings = ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 4\r\nContent-Length: 90\r\n")
    for framing in framings:
        answer = server.raw(post(f"0\r\n\r\n{hidden}", framing))
        assert b"pack_digest" not in answer
        assert answer.count(b"HTTP/1.1 ") == 1
    both = server.raw((f"GET /readyz HTTP/1.1\r\n{HEAD}\r\n{hidden}").encode())
    assert both.count(b"HTTP/1.1 200") == 2


WRONG_BODIES = {
    "not JSON": ("{", "not_json"),
    "not UTF-8": ("\ufeff{}", "not_json"),
    "a key twice": ('{"task": "t1", "task": "t1", "candidate": ""}', "not_json"),
    "NaN": ('{"task": "t1", "candidate": NaN}', "not_json"),
    "endless number": ('{"task": "t1", "candidate": 1e999}', "not_json"),
    "digits": (f'{{"task": "t1", "candidate": {"9" * 100_000}}}', "not_json"),
    "nested deeply": ("[" * 200_000, "not_json"),
    "no object": ("[]", "not_a_request"),
    "no candidate": ('{"task": "t1"}', "not_a_request"),
    "an unknown key": ('{"task": "t1", "candidate": "x", "admin": true}', "not_a_request"),
    "null": ('{"task": "t1", "candidate": null}', "not_a_request"),
    "two candidates": ('{"task": "t1", "candidate": {"completion": "x", "solution": "y"}}', "not_a_request"),
    "a number as the task": ('{"task": 1, "candidate": "x"}', "not_a_request"),
    "a long name": (json.dumps({"task": "t" * 2000, "candidate": "x"}), "not_a_request"),
}


@pytest.mark.parametrize("attack", WRONG_BODIES)
def test_body_of_another_form_is_told_what_is_wrong_and_nothing_is_repeated(server: Served, attack: str) -> None:
    body, code = WRONG_BODIES[attack]
    with server.client() as client:
        answer = client.post("/v1/grade", content=body.encode(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)
    assert len(answer.text) < 2000


def test_values_of_a_refused_request_are_not_repeated(server: Served) -> None:
    with server.client() as client:
        answer = client.post("/v1/grade", json={"task": ["secret-value"], "candidate": {"x": "secret-value"}})
    assert answer.status_code == 422
    assert "secret-value" not in answer.text


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_is_taken_so_no_form_of_a_page_can_post(server: Served, kind: str) -> None:
    with server.client() as client:
        headers = {"Content-Type": kind} if kind else {}
        assert client.post("/v1/grade", content=ONE.encode(), headers=headers).status_code == 415


def test_compressed_body_is_refused(server: Served) -> None:
    assert status(server.raw(post(ONE, "Content-Encoding: gzip\r\n"))) == 415


@pytest.mark.parametrize("chunked", [False, True])
def test_body_beyond_its_limit_is_refused_and_not_kept(server: Served, chunked: bool) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"task": "t1", "candidate": "'
        for _ in range(200):
            yield b"x" * 10_000
        yield b'"}'

    with server.client() as client:
        content = pieces() if chunked else b"".join(pieces())
        try:
            answer = client.post("/v1/grade", content=content, headers={"Content-Type": "application/json"})
        except httpx2.TransportError:
            return  # it may close before all of it was sent
    assert answer.status_code == 413


def test_no_byte_of_a_body_is_asked_for_before_the_token_was_right(server: Served) -> None:
    """A client that waits for the word is told to go on only with the token."""
    expecting = "Expect: 100-continue\r\n"
    for head, wanted in ((HEAD, b"100"), ("Host: localhost\r\n", b"401")):
        with socket.create_connection(server.address, timeout=60) as connection:
            request = f"POST /v1/grade HTTP/1.1\r\n{head}{TYPE}Content-Length: {len(ONE)}\r\n{expecting}\r\n"
            connection.sendall(request.encode())
            assert connection.recv(4096).split(b" ")[1] == wanted
            if wanted == b"100":
                connection.sendall(ONE.encode())
                answer = b""
                while b'"passed":' not in answer and (piece := connection.recv(4096)):
                    answer += piece
                assert b'"passed":true' in answer


def test_batch_beyond_its_limit_is_refused_as_a_whole(server: Served) -> None:
    item = {"task": "t1", "candidate": "Answer: 42"}
    with server.client() as client:
        assert client.post("/v1/grade/batch", json={"items": [item] * 4}).status_code == 413
        assert client.post("/v1/grade/batch", json={"items": []}).status_code == 422
        wrong = client.post("/v1/grade/batch", json={"items": [item, {"task": "x", "candidate": ""}]})
        assert (wrong.status_code, "items[1]" in wrong.text) == (404, True)
        assert len(client.post("/v1/grade/batch", json={"items": [item] * 3}).text.splitlines()) == 3


def test_flood_is_told_to_come_back_and_what_was_taken_is_answered(server: Served) -> None:
    answers: list[tuple[int, str | None]] = []
    lock = threading.Lock()

    def one(_: int) -> None:
        answer = server.grade("sq", RIGHT.replace("return", "__import__('time').sleep(0.5) or"))
        with lock:
            answers.append((answer.status_code, answer.headers.get("retry-after")))
        assert answer.status_code != 200 or answer.json()["passed"] in (True, False)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(one, range(40)))
    statuses = [code for code, _ in answers]
    assert set(statuses) == {200, 429}
    assert len(answers) == 40
    assert all(wait is not None and int(wait) >= 1 for code, wait in answers if code == 429)


def test_connections_that_say_nothing_keep_nobody_out(server: Served) -> None:
    """More than may be open at once; the longest silent one goes when another comes."""
    with ExitStack() as stack:
        for number in range(40):
            silent = stack.enter_context(socket.create_connection(server.address, timeout=10))
            if number % 2:
                silent.sendall(b"POST /v1/grade HTTP/1.1\r\nHost: loc")
        began = time.monotonic()
        assert server.grade("t1", "Answer: 42").json()["passed"]
        assert time.monotonic() - began < 8


def test_busy_connections_are_not_ended_for_silent_ones(server: Served) -> None:
    with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        busy = pool.submit(server.grade, "sq", SLOW)
        time.sleep(1)
        for _ in range(40):
            stack.enter_context(socket.create_connection(server.address, timeout=10))
        assert busy.result(timeout=60).json()["passed"]


def test_head_that_never_ends_is_ended(server: Served) -> None:
    """A byte now and then buys no more time than the head as a whole has."""
    began = time.monotonic()
    with socket.create_connection(server.address, timeout=30) as slow:
        slow.sendall(b"GET /readyz HTTP/1.1\r\n")
        while time.monotonic() - began < 25:
            try:
                slow.sendall(b"X")
            except OSError:
                break
            slow.settimeout(0.5)
            try:
                if slow.recv(100) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert 8 < time.monotonic() - began < 20


def test_upgrade_and_tunnel_are_refused(server: Served) -> None:
    upgrade = f"GET /readyz HTTP/1.1\r\n{HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert status(server.raw(upgrade.encode())) in (200, 400)
    assert b" 101 " not in server.raw(upgrade.encode())
    assert status(server.raw(f"CONNECT example.org:443 HTTP/1.1\r\n{HEAD}\r\n".encode())) in (404, 405)


def test_path_is_taken_letter_by_letter(server: Served) -> None:
    for path in (
        "/v1/tasks/",
        "//v1/tasks",
        "/v1/../v1/tasks",
        "/v1/%74asks",
        "/V1/tasks",
        "http://localhost/v1/tasks",
    ):
        assert status(server.raw(f"GET {path} HTTP/1.1\r\n{HEAD}\r\n".encode())) == 404, path
    assert status(server.raw(f"GET /v1/tasks?x=1 HTTP/1.1\r\n{HEAD}\r\n".encode())) == 400
    assert status(server.raw(f"DELETE /v1/tasks HTTP/1.1\r\n{HEAD}\r\n".encode())) == 405


def test_client_that_does_not_read_its_answers_is_given_up(server: Served) -> None:
    """It sends requests for ever and reads nothing: it holds one connection, and no memory that grows."""
    request = f"GET /openapi.json HTTP/1.1\r\n{HEAD}\r\n".encode()
    with socket.create_connection(server.address, timeout=5) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent = 0
        try:
            while sent < 400_000:
                deaf.sendall(request * 500)
                sent += 500
        except OSError:
            pass
        assert server.grade("t1", "Answer: 42").json()["passed"]
        assert sent < 400_000, "it was not read on without end"
