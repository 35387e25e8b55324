"""`securebench serve`: a real server process, real clients, real verdicts."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.e2e.served import CODE, RIGHT, TOKEN, WRONG, Served, lines, make_pack, served
from tests.e2e.workbench import CLI, need_bubblewrap, question, securebench

from securebench.serving.routes import ROUTES

SLOW = "import time\ndef sq(x):\n    time.sleep(%s)\n    return x * x\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    need_bubblewrap()
    with served(tmp_path_factory.mktemp("served")) as running:
        yield running
        assert running.stop() == 0
        assert TOKEN not in running.said()


def _children(pid: int) -> list[int]:
    """The engine's processes of a server."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and b"executors.child" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


# -- verdicts ------------------------------------------------------------------------------------------------------


def test_one_candidate_gets_its_verdict_in_a_fixed_shape(server: Served) -> None:
    answer = server.grade("sq", RIGHT)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "task": "sq",
        "status": "passed",
        "passed": True,
        "score": 1.0,
        "assurance": "isolated",
        "failure_reason": None,
        "details": None,
    }
    wrong = server.grade("sq", WRONG).json()
    assert (wrong["passed"], wrong["failure_reason"]) == (False, "wrong_answer")
    assert wrong.keys() == answer.json().keys()
    assert server.grade("t1", "Answer: 42").json()["passed"]


@pytest.mark.parametrize(
    "candidate", ["import os; os._exit(0)", "while True: pass", "\x00", "\ud800", "", "x" * 1_100_000]
)
def test_whatever_a_candidate_is_or_does_is_a_verdict(server: Served, candidate: str) -> None:
    data = json.dumps({"task": "t1" if "while" in candidate else "sq", "candidate": candidate})
    with server.client() as client:
        answer = client.post("/v1/grade", content=data, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["passed"]) == (200, False), answer.text


def test_candidates_can_be_named_as_in_samples_files(server: Served) -> None:
    assert server.grade("sq", {"solution": RIGHT}).json()["passed"]
    assert server.grade("sq", {"completion": "    return x * x\n"}).json()["passed"]
    refused = server.grade("sq", {"model_patch": "diff"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_a_candidate")


def test_batch_answers_each_item_in_order_of_completion(server: Served) -> None:
    items = [{"task": "sq", "candidate": SLOW % 2}, *({"task": "t1", "candidate": f"Answer: {n}"} for n in (42, 41))]
    items += [{"task": "sq", "candidate": RIGHT}]
    with server.client() as client:
        answer = client.post("/v1/grade/batch", json={"items": items})
    assert answer.headers["content-type"] == "application/x-ndjson"
    found = {line["index"]: line["verdict"]["passed"] for line in lines(answer)}
    assert found == {0: True, 1: True, 2: False, 3: True}
    assert lines(answer)[-1]["index"] == 0, "the slow one comes last"


def test_lines_of_a_batch_arrive_when_they_are_there(server: Served) -> None:
    items = [{"task": "t1", "candidate": "Answer: 42"}, {"task": "sq", "candidate": SLOW % 3}]
    with server.client() as client, client.stream("POST", "/v1/grade/batch", json={"items": items}) as answer:
        began, seen = time.monotonic(), []
        for _ in answer.iter_lines():
            seen.append(time.monotonic() - began)
    assert len(seen) == 2
    assert seen[0] < seen[1] - 1.5


def test_tasks_are_listed_without_what_they_ask(server: Served) -> None:
    with server.client() as client:
        listed = client.get("/v1/tasks").json()
    assert listed["benchmark"] == "served"
    assert [(task["id"], task["candidate"]) for task in listed["tasks"]] == [("t1", "text"), ("sq", "code")]
    assert "prompt" not in json.dumps(listed)


def test_unknown_task_is_told_with_what_may_have_been_meant(server: Served) -> None:
    answer = server.grade("sqq", RIGHT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_task")
    assert "'sq'" in answer.json()["error"]["message"]


def test_one_connection_carries_many_requests(server: Served) -> None:
    before = server.metrics()["securebench_connections_total"]
    with server.client() as client:
        for _ in range(20):
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.post("/v1/grade", content=b"{").status_code == 415, "a refusal does not end it"
    assert server.metrics()["securebench_connections_total"] - before <= 2


def test_metrics_are_in_the_text_format_and_count(server: Served) -> None:
    before = server.metrics()
    server.grade("t1", "Answer: 42")
    server.grade("t1", "Answer: 1")
    after = server.metrics()
    for status in ("passed", "failed"):
        name = f'securebench_verdicts_total{{status="{status}"}}'
        assert after[name] == before.get(name, 0) + 1
    assert after["securebench_candidates_pending"] == 0
    with server.client() as client:
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in answer.text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{\w+=\"[^\"]*\"(,\w+=\"[^\"]*\")*\})? [0-9.e+-]+", line), line


# -- who may ask ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/grade", "/v1/tasks", "/healthz", "/readyz", "/metrics", "/openapi.json", "/x"])
@pytest.mark.parametrize("token", [None, "-", "wrong", TOKEN[:-1], TOKEN + "x", f"{TOKEN} {TOKEN}"])
def test_nothing_is_told_without_the_token(server: Served, path: str, token: str | None) -> None:
    with server.client(token) as client:
        answer = client.request("POST" if "grade" in path else "GET", path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert "served" not in answer.text


def test_token_elsewhere_than_in_its_header_lets_nobody_in(server: Served) -> None:
    with server.client(None) as client:
        assert client.get("/readyz", headers={"Cookie": f"token={TOKEN}"}).status_code == 401
        assert client.get(f"/readyz?token={TOKEN}").status_code == 401
        assert client.get("/readyz", auth=("user", TOKEN)).status_code == 401
        assert client.get("/readyz", headers={"X-Api-Key": TOKEN}).status_code == 401
    field = f"Authorization: Bearer {TOKEN}\r\n"
    for fields, status in ((field, b" 200 "), (field * 2, b" 401 "), (field.replace("Bearer", "Basic"), b" 401 ")):
        assert status in server.raw(f"GET /readyz HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n".encode())


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.example", "", "a b", "[x]"])
def test_page_that_was_rebound_to_this_address_is_refused(server: Served, host: str) -> None:
    request = f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    assert b" 421 " in server.raw(request.encode())


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:80", "10.1.2.3"])
def test_own_names_and_addresses_are_accepted(server: Served, host: str) -> None:
    request = f"GET /readyz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    assert b" 200 " in server.raw(request.encode())


def test_no_other_origin_is_let_in_by_a_browser(server: Served) -> None:
    with server.client() as client:
        asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        answers = [client.options("/v1/grade", headers=asked), client.get("/v1/tasks", headers=asked)]
    assert answers[0].status_code == 405
    assert not any("access-control" in name or "cookie" in name for one in answers for name in one.headers)


# -- whole life ----------------------------------------------------------------------------------------------------


def test_sixty_four_clients_at_once_are_all_answered(server: Served) -> None:
    def one(number: int) -> bool:
        right = number % 2 == 0
        answer = server.grade("sq", RIGHT if right else WRONG)
        assert answer.status_code == 200, answer.text
        return bool(answer.json()["passed"]) is right

    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(one, range(64)))


def test_client_that_goes_away_frees_its_place_and_nobody_elses(server: Served) -> None:
    before = server.metrics()
    body = json.dumps({"task": "sq", "candidate": SLOW % 29}).encode()
    head = f"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    leavers = [socket.create_connection(server.address) for _ in range(8)]
    for leaver in leavers:
        leaver.sendall(head.encode() + body)
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(server.grade, "sq", RIGHT) for _ in range(4)]
        deadline = time.monotonic() + 60
        while server.metrics()["securebench_candidates_pending"] < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        for leaver in leavers:
            leaver.close()
        deadline = time.monotonic() + 24
        assert all(other.result(timeout=24).json()["passed"] for other in others), "before theirs would be over"
    while server.metrics()["securebench_candidates_pending"] and time.monotonic() < deadline:
        time.sleep(0.05)
    after = server.metrics()
    assert after["securebench_candidates_pending"] == 0
    assert after["securebench_requests_lost_total"] - before["securebench_requests_lost_total"] == 8
    assert after["securebench_process_restarts_total"] == before["securebench_process_restarts_total"]


def test_client_that_leaves_a_batch_ends_all_of_it(server: Served) -> None:
    items = [{"task": "sq", "candidate": SLOW % 20}] * 12
    began = time.monotonic()
    with server.client() as client, client.stream("POST", "/v1/grade/batch", json={"items": items}) as answer:
        assert answer.status_code == 200
        assert server.metrics()["securebench_candidates_pending"] == 12
    while server.metrics()["securebench_candidates_pending"] and time.monotonic() - began < 15:
        time.sleep(0.05)
    assert server.metrics()["securebench_candidates_pending"] == 0


def test_killed_process_loses_no_request(server: Served) -> None:
    before = server.metrics()["securebench_process_restarts_total"]
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(server.grade, "sq", SLOW % 0.5) for _ in range(6)]
        time.sleep(0.7)
        victims = _children(server.process.pid)
        assert victims
        os.kill(victims[0], signal.SIGKILL)
        assert [one.result(timeout=300).json()["passed"] for one in asked] == [True] * 6
    assert server.metrics()["securebench_process_restarts_total"] == before + 1


def test_memory_stays_flat_over_thousands_of_requests(server: Served) -> None:
    def held() -> tuple[int, int]:
        process = Path(f"/proc/{server.process.pid}")
        kilobytes = int(re.findall(r"VmRSS:\s+(\d+)", (process / "status").read_text())[0])
        return kilobytes, len(list((process / "fd").iterdir()))

    def ask(count: int) -> None:
        with server.client() as client:
            for number in range(count):
                assert client.get("/healthz").status_code == 200
                if number % 10 == 0:
                    assert client.post("/v1/grade", json={"task": "t1", "candidate": "Answer: 1"}).status_code == 200
                if number % 10 == 5:
                    assert client.post("/v1/grade", json={"task": "t1", "x": "y" * 50_000}).status_code == 422

    ask(500)
    memory, descriptors = held()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, [1200, 1200]))
    assert held()[0] - memory < 8 * 1024
    assert held()[1] - descriptors < 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopped_under_load_it_finishes_what_it_took_and_takes_no_more(tmp_path: Path, number: signal.Signals) -> None:
    need_bubblewrap()
    with served(tmp_path, "--grace", "200") as server, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(server.grade, "sq", SLOW % 2) for _ in range(6)]
        with socket.create_connection(server.address) as idle:
            _until_pending(server, 6)
            server.process.send_signal(number)
            assert [one.result(timeout=300).json().get("passed") for one in asked] == [True] * 6
            assert idle.recv(10) == b"", "nothing was asked there"
        assert server.process.wait(120) == 0
        with pytest.raises(httpx2.TransportError):
            server.grade("t1", "Answer: 42")
        assert server.said().rstrip().endswith("stopped")
    assert _left_of(server.process.pid) == []


def test_what_does_not_finish_in_the_grace_time_is_told_and_not_scored(tmp_path: Path) -> None:
    need_bubblewrap()
    with served(tmp_path, "--grace", "1", "--workers", "4") as server, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(server.grade, "sq", SLOW % 25) for _ in range(2)]

        def batch() -> httpx2.Response:
            items = [{"task": "t1", "candidate": "Answer: 42"}, {"task": "sq", "candidate": SLOW % 25}]
            with server.client() as client:
                return client.post("/v1/grade/batch", json={"items": items})

        many = pool.submit(batch)
        _until_pending(server, 4, passed=1)  # the text of the batch, which counts until all of it is judged
        time.sleep(2)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20
        for one in asked:
            answer = one.result()
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        told = {line["index"]: line for line in lines(many.result())}
        assert told[0]["verdict"]["passed"]
        assert (told[1]["verdict"], told[1]["error"]["code"]) == (None, "not_ready")
    assert _left_of(server.process.pid) == []


def test_second_signal_ends_it_now(tmp_path: Path) -> None:
    need_bubblewrap()
    with served(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.grade, "sq", SLOW % 25)
        _until_pending(server, 1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 20
        assert asked.result().status_code == 503


def _until_pending(server: Served, count: int, passed: int = 0) -> None:
    """Until the server has taken so many candidates, and so many have passed."""
    deadline, verdicts = time.monotonic() + 60, 'securebench_verdicts_total{status="passed"}'
    while (seen := server.metrics())["securebench_candidates_pending"] < count or seen.get(verdicts, 0) < passed:
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def _left_of(pid: int) -> list[str]:
    """Staging directories and processes that name a server as their owner."""
    import tempfile

    directories = [str(path) for path in Path(tempfile.gettempdir()).glob(f"securebench-{pid}-*")]
    return directories + [str(child) for child in _children(pid)]


# -- starting ------------------------------------------------------------------------------------------------------


def test_token_is_made_and_shown_once_where_none_is_given(tmp_path: Path) -> None:
    with served(tmp_path, rows=[question(1)], token=None) as server:
        (token,) = re.findall(r"token, shown only now: (\S{40,})", server.said())
        with server.client(token) as client:
            assert client.get("/readyz").status_code == 200
        with server.client(TOKEN) as client:
            assert client.get("/readyz").status_code == 401
        assert server.stop() == 0
        assert server.said().count(token) == 1


def test_token_can_come_from_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("another-token-0123456789\n")
    file.chmod(0o644)
    pack = make_pack(tmp_path / "pack", [question(1)])
    refused = securebench("serve", pack, "--port", "0", "--token-file", file)
    assert (refused.code, "chmod 600" in refused.err) == (2, True)
    file.chmod(0o600)
    with served(tmp_path, "--token-file", str(file), rows=[question(1)]) as server:
        with server.client("another-token-0123456789") as client:
            assert client.get("/readyz").status_code == 200
        with server.client(TOKEN) as client:
            assert client.get("/readyz").status_code == 401, "the file comes first"
        environ = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert b"another-token" not in environ


@pytest.mark.parametrize("token", ["short", "with space in it 0123456789", "ünïcödé-0123456789"])
def test_weak_or_unusable_token_is_refused(tmp_path: Path, token: str) -> None:
    pack = make_pack(tmp_path / "pack", [question(1)])
    done = securebench("serve", pack, "--port", "0", env={"SECUREBENCH_TOKEN": token})
    assert done.code == 2
    assert token not in done.err


def test_address_that_others_reach_is_said_aloud_and_names_are_allowed_one_by_one(tmp_path: Path) -> None:
    with served(tmp_path, "--host", "0.0.0.0", "--allow-host", "bench.example", rows=[question(1)]) as server:
        assert "not encrypted" in server.said()
        assert "every machine that reaches it" in server.said()
        for host, status in (("bench.example", b" 200 "), ("other.example", b" 421 ")):
            request = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            assert status in server.raw(request.encode())


def test_quiet_on_loopback(tmp_path: Path) -> None:
    with served(tmp_path, rows=[question(1)]) as server:
        assert server.address[0] == "127.0.0.1"
        assert "warning" not in server.said()


def test_what_cannot_be_served_is_told(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack", [question(1)])
    assert securebench("serve", tmp_path / "nothing").code == 2
    assert securebench("serve", pack, "--host", "example.org").code == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = securebench("serve", pack, "--port", str(taken.getsockname()[1]))
        assert (done.code, "in use" in done.err) == (3, True)


@contextmanager
def starting(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], httpx2.Client]]:
    """A server that answers already, but judges nothing yet."""
    need_bubblewrap()
    pack = make_pack(tmp_path / "pack", [CODE])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [*CLI, "serve", str(pack), "--port", str(port)]
    env = {**os.environ, "SECUREBENCH_TOKEN": TOKEN}
    how = {"base_url": f"http://127.0.0.1:{port}", "headers": {"Authorization": f"Bearer {TOKEN}"}}
    with (
        subprocess.Popen(argv, stderr=subprocess.DEVNULL, env=env) as process,
        httpx2.Client(**how, trust_env=False, timeout=30) as client,  # type: ignore[arg-type]
    ):
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                client.get("/healthz")
                break
            except httpx2.ConnectError:
                time.sleep(0.01)
        try:
            yield process, client
        finally:
            process.kill()


def test_queue_that_holds_no_whole_batch_is_refused(tmp_path: Path) -> None:
    argv = [*CLI, "serve", str(make_pack(tmp_path, [question(1)])), "--queue", "8"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "--queue 8 is less than --max-batch 256" in done.stderr


def test_stopped_while_it_starts_it_ends_at_once(tmp_path: Path) -> None:
    with starting(tmp_path) as (process, client):
        assert client.get("/readyz").json() == {"status": "starting"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_not_ready_is_told_while_it_starts(tmp_path: Path) -> None:
    with starting(tmp_path) as (process, client):
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "starting"})
        refused = client.post("/v1/grade", json={"task": "sq", "candidate": RIGHT})
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        deadline = time.monotonic() + 60
        while client.get("/readyz").status_code != 200 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert client.get("/readyz").json() == {"status": "ok"}
        assert client.post("/v1/grade", json={"task": "sq", "candidate": RIGHT}).json()["passed"]
        process.terminate()
        assert process.wait(120) == 0


# -- what is said --------------------------------------------------------------------------------------------------


def test_hidden_values_are_in_no_answer_not_even_in_details(tmp_path: Path) -> None:
    need_bubblewrap()
    marker = "hidden-marker-7c1f9e"
    code = f"def check(f):\n    assert f(3) == '{marker}', '{marker}'\n"
    rows = [
        {**CODE, "eval": {"tests": {"source": "inline", "code": code}, "reference_solution": f"# {marker}\n{RIGHT}"}},
        {"id": "a", "family": "short_answer", "input": {"question": "?"}, "eval": {"accepted_answers": [marker]}},
    ]
    echo = "import sys\ndef sq(x):\n    raise ValueError(sys.modules)\n"
    with served(tmp_path, "--details", rows=rows) as server:
        answers = [server.grade("sq", RIGHT), server.grade("sq", echo), server.grade("a", "Answer: no")]
        answers.append(server.grade("a", {"model_patch": "x"}))
        answers.append(server.grade("b", "x"))
        with server.client() as client:
            answers += [client.get(path) for path in ("/v1/tasks", "/metrics", "/openapi.json")]
        assert answers[0].json()["details"]["metadata"]["tests"]["planned"] >= 1
        assert all(marker not in answer.text for answer in answers)
        assert server.grade("a", f"Answer: {marker}").json()["passed"], "positive control: it is the answer"
        assert server.stop() == 0
        assert marker not in server.said()


def test_fault_of_the_host_is_never_a_verdict(tmp_path: Path) -> None:
    """The pack changes while it is served: nobody is scored by it, and only the operator is told what happened."""
    with served(tmp_path, rows=[question(1), question(2)]) as server:
        assert server.grade("t1", "Answer: 42").json()["passed"]
        tasks = tmp_path / "pack" / "tasks.jsonl"
        tasks.write_text(tasks.read_text().replace("42", "43"))
        answer = server.grade("t2", "Answer: 43")
        assert answer.status_code == 503
        assert answer.json()["error"] == {
            "code": "infrastructure",
            "message": "the host or the pack failed; nothing was scored",
        }
        assert "no verdict" in server.said()


def test_server_that_can_judge_no_more_ends_and_says_why(tmp_path: Path) -> None:
    """Whoever keeps it running learns of it; a server that answers 503 for ever looks well from afar."""
    with served(tmp_path, "--workers", "1", rows=[question(1)]) as server:
        assert server.grade("t1", "Answer: 42").json()["passed"]
        tasks = tmp_path / "pack" / "tasks.jsonl"
        tasks.write_text(tasks.read_text().replace("42", "43"))
        os.kill(_children(server.process.pid)[0], signal.SIGKILL)
        assert server.process.wait(120) == 3
        assert "nothing can be judged any more" in server.said()
        assert "the pack changed" in server.said()


# -- as documented -------------------------------------------------------------------------------------------------

DOC = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()


def test_example_of_the_documentation_runs(tmp_path: Path) -> None:
    need_bubblewrap()
    assert securebench("init", tmp_path / "my-pack").code == 0
    shell, program = (re.search(rf"```{kind}\n(.*?)```", DOC, re.DOTALL) for kind in ("sh", "python"))
    assert shell is not None
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = shell[1].replace("8765", port).replace("securebench serve", f"exec {' '.join(CLI)} serve --json")
    argv = ["/bin/sh", "-c", command]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            assert json.loads(server.stdout.readline())["url"].endswith(port)
            script = [sys.executable, "-c", program[1].replace("8765", port)]
            done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
            server.terminate()
            assert server.wait(120) == 0
        finally:
            server.kill()
    first, *rest = done.stdout.splitlines()
    assert first == "False 0.0 wrong_answer", done.stderr
    assert {line["index"]: line["verdict"]["passed"] for line in map(json.loads, rest)} == {0: False, 1: True, 2: False}


def test_every_option_and_endpoint_is_documented() -> None:
    options = set(re.findall(r"(--[a-z-]+)", securebench("serve", "--help").out))
    common = {"--config", "--env-file", "--unsafe", "--json", "--help", "--workers", "--port"}
    assert {option for option in options if f"`{option}" not in DOC} <= common
    for route in ROUTES:
        assert route.path in DOC
