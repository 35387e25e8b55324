"""Attacks on the viewer: other pages, other users' files, other protocols. Beside most of them stands what the same
attack does to a server that trusts: Python's own, on the same directory."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.viewing import Viewer, viewer

from securebench.reports.view.library import run_id
from securebench.testing.synthetic_run import SyntheticRun, write_run

SECRET = "the-secret-of-another-directory"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and beside it what a stranger could have put there."""
    place = tmp_path_factory.mktemp("view")
    (place / "secret.json").write_text(f'{{"run_id": "{SECRET}"}}')
    root = place / "root"
    write_run(root / "good", SyntheticRun(run_id="good", tasks=6))
    write_run(place / "outside", SyntheticRun(run_id=SECRET, tasks=2))
    (root / "linked").symlink_to(place / "outside")
    for name in ("plan.json", "candidates.jsonl", "summary.json", "events.jsonl"):
        trap = write_run(root / f"link-{name}", SyntheticRun(run_id="trap", tasks=2))
        (trap / name).unlink(missing_ok=True)
        (trap / name).symlink_to(place / "secret.json")
        pipe = write_run(root / f"fifo-{name}", SyntheticRun(run_id="pipe", tasks=2))
        (pipe / name).unlink(missing_ok=True)
        os.mkfifo(pipe / name)
    large = write_run(root / "large", SyntheticRun(run_id="large", tasks=2))
    with (large / "candidates.jsonl").open("r+b") as file:
        file.truncate(40 * 2**30)
    with (large / "summary.json").open("r+b") as file:
        file.truncate(40 * 2**30)
    return root


@pytest.fixture(scope="module")
def shown(root: Path) -> Iterator[Viewer]:
    with viewer(root) as running:
        yield running


@contextmanager
def trusting(directory: Path) -> Iterator[str]:
    """Python's own server on loopback."""
    argv = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(directory), "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            found = re.search(rb"port (\d+)", process.stdout.readline())
            assert found
            yield f"http://127.0.0.1:{found[1].decode()}"
        finally:
            process.terminate()
            process.wait(10)


def fetched(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def test_the_right_address_shows_the_runs(shown: Viewer) -> None:
    answer = shown.ask()
    assert answer.status == 200
    assert b"good" in answer.body
    assert shown.ask(f"run/{run_id('good')}/report").status == 200


def test_without_the_token_nobody_learns_anything(shown: Viewer, root: Path) -> None:
    host = f"Host: 127.0.0.1:{shown.port}\r\n\r\n"
    wrong = shown.token[:-1] + ("a" if shown.token[-1] != "a" else "b")
    ways = ["/", f"/{wrong}/", f"/{wrong}/run/{run_id('good')}/report", f"/run/{run_id('good')}/report", "/x"]
    answers = [shown.send(f"GET {way} HTTP/1.1\r\n{host}".encode()) for way in ways]
    assert {(answer.status, answer.body) for answer in answers} == {(404, answers[0].body)}
    assert all(b"good" not in answer.body for answer in answers)
    with trusting(root) as open_to_all:
        assert "good" in fetched(open_to_all + "/")


def test_a_name_that_was_pointed_at_loopback_is_refused(shown: Viewer, root: Path) -> None:
    for host in ("evil.invalid", f"evil.invalid:{shown.port}", "127.0.0.1", f"127.0.0.1:{shown.port + 1}"):
        answer = shown.ask(host=host)
        assert (answer.status, b"good" in answer.body) == (403, False), host
    twice = f"GET /{shown.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\nHost: evil.invalid\r\n\r\n"
    assert shown.send(twice.encode()).status in {400, 403}
    absolute = f"GET http://evil.invalid/{shown.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{shown.port}\r\n\r\n"
    assert shown.send(absolute.encode()).status == 404
    with trusting(root) as rebound:
        assert "good" in fetched(rebound + "/", Host="evil.invalid")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_asked_for_but_to_look(shown: Viewer, method: str) -> None:
    answer = shown.ask(method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_has_no_body(shown: Viewer) -> None:
    answer = shown.ask(method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


@pytest.mark.parametrize(
    "way",
    [
        "../secret.json",
        "run/../../secret.json",
        "run/%2e%2e/report",
        "run/..%2fsecret.json/report",
        "run/....//report",
        "run//etc/passwd/report",
        "static/../../../../etc/passwd",
        "run/good/report",
        "run/good/../../../secret.json",
    ],
)
def test_no_way_leads_out_of_the_list(shown: Viewer, way: str) -> None:
    answer = shown.ask(way)
    assert answer.status == 404
    assert SECRET.encode() not in answer.body
    assert b"root:" not in answer.body


def test_runs_that_are_links_are_not_there(shown: Viewer, root: Path) -> None:
    assert SECRET.encode() not in shown.ask().body
    assert shown.ask(f"run/{run_id('linked')}/report").status == 404
    with trusting(root) as following:
        assert SECRET in fetched(f"{following}/linked/summary.json")


@pytest.mark.parametrize("name", ["plan.json", "candidates.jsonl", "summary.json", "events.jsonl"])
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_runs_with_links_and_pipes_in_them_are_not_opened(shown: Viewer, kind: str, name: str) -> None:
    key = run_id(f"{kind}-{name}")
    began = time.monotonic()
    for way in (f"run/{key}/report", f"run/{key}/live", f"run/{key}/events", f"compare/{key}/{run_id('good')}"):
        answer = shown.ask(way)
        assert answer.status == 403, way
        assert SECRET.encode() not in answer.body
    assert time.monotonic() - began < 100
    assert SECRET.encode() not in shown.ask().body


def test_files_beyond_all_measure_are_not_read(shown: Viewer) -> None:
    began = time.monotonic()
    answer = shown.ask(f"run/{run_id('large')}/report")
    assert answer.status == 403
    assert b"too many to show" in answer.body
    assert shown.ask().status == 200
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_or_dropped_and_ends_nothing(shown: Viewer, data: bytes) -> None:
    assert shown.send(data).status in {400, 403}
    assert shown.ask().status == 200


def test_silent_and_endless_visitors_keep_nobody_out(shown: Viewer) -> None:
    visitors = []
    try:
        for number in range(200):
            connection = socket.create_connection(("127.0.0.1", shown.port), timeout=60)
            visitors.append(connection)
            if number % 2:
                connection.sendall(b"GET /" + b"a" * 1000)
        assert shown.ask().status == 200
    finally:
        for connection in visitors:
            connection.close()


def test_a_head_without_end_is_dropped(shown: Viewer) -> None:
    with socket.create_connection(("127.0.0.1", shown.port), timeout=120) as connection:
        try:
            for _ in range(2000):
                connection.sendall(b"X" * 1000)
            answer = connection.recv(1)
        except (ConnectionResetError, BrokenPipeError):
            answer = b""
        assert answer == b""
    assert shown.ask().status == 200


def test_it_listens_on_loopback_alone(shown: Viewer) -> None:
    with open("/proc/net/tcp") as table, open("/proc/net/tcp6") as table6:
        lines = [line.split()[1] for line in (*table, *table6) if line.split()[3] == "0A"]
    assert [line for line in lines if line.endswith(f":{shown.port:04X}")] == [f"0100007F:{shown.port:04X}"]


def test_every_answer_keeps_others_out(shown: Viewer) -> None:
    for answer in (shown.ask(), shown.ask("x"), shown.ask(host="evil.invalid"), shown.ask(method="POST")):
        assert answer.headers["referrer-policy"] == "no-referrer", "the address holds the token"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "set-cookie" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_every_start_has_another_token(root: Path) -> None:
    with viewer(root) as one, viewer(root) as other:
        assert one.token != other.token
        assert len(one.token) >= 32
        assert other.send(f"GET /{one.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{other.port}\r\n\r\n".encode()).status == 404


def test_nothing_is_written_to_what_is_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", SyntheticRun(tasks=4))

    def state() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in tmp_path.rglob("*"))

    before = state()
    with viewer(tmp_path) as shown:
        for way in ("", f"run/{run_id('run')}/report", f"run/{run_id('run')}/live", f"compare/{run_id('run')}/"):
            assert shown.ask(way).status == 200, way
    assert state() == before
    assert run.is_dir()


TIMELESS = Path("/dev/shm")  # a file system that keeps any time; others move it to one that has a date


@pytest.mark.skipif(not TIMELESS.is_dir(), reason="there is no tmpfs")
@pytest.mark.parametrize("time_written", [2**40, -(2**40)])
def test_a_time_that_no_calendar_has_ends_no_server(time_written: int) -> None:
    with tempfile.TemporaryDirectory(dir=TIMELESS) as place:
        run = write_run(Path(place) / "run", SyntheticRun(run_id="of-no-time", tasks=1))
        for file in run.glob("*.json*"):
            os.utime(file, (time_written, time_written))
        assert (run / "plan.json").stat().st_mtime == time_written
        with viewer(Path(place)) as served:
            for _ in range(2):
                answer = served.ask()
                assert answer.status == 200
                assert b"of-no-time" in answer.body


def test_a_journal_of_no_time_ends_no_server(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "plan.json").write_text("{}")
    (run / "events.jsonl").write_text(
        '{"event":"run_start","time":0,"planned":1,"done_before":0}\n'
        '{"event":"task_done","time":5e-324,"task_id":"a","attempt":1,"status":"passed"}\n'
        '{"event":"run_done","time":5e-324}\n'
    )
    with viewer(tmp_path) as served:
        assert b'"finished":true' in served.ask(f"run/{run_id('run')}/events").body
        assert served.ask().status == 200
