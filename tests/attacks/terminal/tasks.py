"""Terminal tasks: what the checker looks at, an honest workspace, and one that is simply wrong."""

from __future__ import annotations

import io
import sqlite3
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.attacks.terminal.judging import Content


@dataclass(frozen=True)
class TerminalTask:
    """`expected_output` is what the checker wants; nobody but the checker knows it."""

    name: str
    checker: str
    honest: Mapping[str, Content]
    wrong: Mapping[str, Content]
    source: str = "pytest"
    more_tests: Mapping[str, str] = field(default_factory=dict)
    run_tests: str | None = None
    reward: bool = False

    @property
    def tests(self) -> dict[str, str]:
        name = "tests/test_outputs.py" if self.source == "pytest" else "tests/check.sh"
        return {name: dedent(self.checker).lstrip(), **self.more_tests}

    @property
    def evaluation(self) -> dict[str, Any]:
        first = next(iter(self.tests))
        value: dict[str, Any] = {"checker": {"source": self.source, "path": first, "timeout_seconds": 90}}
        if self.reward:
            value["checker"]["reward"] = True
        if self.more_tests:
            value["test_files"] = [{"path": path} for path in self.more_tests if path != self.run_tests]
        if self.run_tests:
            value["run_tests"] = {"path": self.run_tests}
        return value


def _database(value: int) -> Content:
    def make(path: Path) -> None:
        with sqlite3.connect(path) as database:
            database.execute("create table totals (name text, amount integer)")
            database.execute("insert into totals values ('all', ?)", (value,))
        database.close()

    return make


def _archive(*names: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    return data.getvalue()


ECHO = Path("/bin/echo").read_bytes()
TASKS = (
    TerminalTask(
        "count",
        """
        from pathlib import Path
        def test_count():
            assert Path("/app/answer.txt").read_text().strip() == "4217"
        """,
        {"answer.txt": "4217\n"},
        {"answer.txt": "4218\n"},
    ),
    TerminalTask(
        "report",
        """
        import json, os
        def test_report():
            with open(os.environ["SECUREBENCH_WORKSPACE"] + "/report.json") as file:
                report = json.load(file)
            assert report["mean"] == 3.5
            assert sorted(report["names"]) == ["ada", "bob"]
        """,
        {"report.json": '{"mean": 3.5, "names": ["bob", "ada"]}'},
        {"report.json": '{"mean": 3.5, "names": []}'},
    ),
    TerminalTask(
        "sum",
        """
        import random, subprocess
        def test_sum():
            for _ in range(3):
                numbers = [random.randrange(1000) for _ in range(5)]
                text = " ".join(map(str, numbers))
                done = subprocess.run(["python3", "/app/sum.py"], input=text, capture_output=True, text=True)
                assert done.returncode == 0
                assert done.stdout.strip() == str(sum(numbers))
        """,
        {"sum.py": "print(sum(map(int, input().split())))\n"},
        {"sum.py": "print(len(input().split()))\n"},
    ),
    TerminalTask(
        "unique",
        """
        import subprocess
        def test_unique():
            done = subprocess.run(["/app/unique.sh"], input="b\\na\\nb\\n", capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (0, "a\\nb\\n")
        def test_through_a_shell():
            done = subprocess.run("printf 'z\\nz\\n' | /app/unique.sh", shell=True, capture_output=True, text=True)
            assert done.stdout == "z\\n"
        """,
        {"unique.sh": "#!/bin/bash\nsort -u\n"},
        {"unique.sh": "#!/bin/bash\ncat\n"},
    ),
    TerminalTask(
        "greeting",
        """
        from securebench import worker
        def test_greeting():
            done = worker.run(["python3", "cli.py", "--name", "Ada"], timeout=30)
            assert (done.returncode, done.stdout) == (0, b"Hello, Ada!\\n")
        def test_usage():
            assert worker.run(["python3", "cli.py"]).returncode == 2
        """,
        {
            "cli.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--name', required=True)\n"
            "print(f'Hello, {p.parse_args().name}!')\n"
        },
        {"cli.py": "print('Hello, Ada!')\n"},
    ),
    TerminalTask(
        "server",
        """
        from securebench import worker
        def test_pages():
            good, bad = worker.http(["python3", "server.py"], [("GET", "/twice?n=21"), ("GET", "/none")], port=8099)
            assert (good.status, good.body) == (200, b"42")
            assert bad.status == 404
        """,
        {
            "server.py": "import http.server, urllib.parse as u\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        p = u.urlparse(self.path)\n"
            "        ok = p.path == '/twice'\n"
            "        self.send_response(200 if ok else 404); self.end_headers()\n"
            "        if ok: self.wfile.write(str(2 * int(u.parse_qs(p.query)['n'][0])).encode())\n"
            "http.server.HTTPServer(('127.0.0.1', 8099), H).serve_forever()\n"
        },
        {"server.py": "import http.server\nhttp.server.test(port=8099, bind='127.0.0.1')\n"},
    ),
    TerminalTask(
        "function",
        """
        import random
        from securebench import worker
        def fib(n):
            a, b = 0, 1
            for _ in range(n):
                a, b = b, a + b
            return a
        def test_fib():
            for n in random.sample(range(40), 4):
                assert worker.call("lib.py", "fib", n) == fib(n)
        """,
        {"lib.py": "def fib(n):\n    a, b = 0, 1\n    for _ in range(n): a, b = b, a + b\n    return a\n"},
        {"lib.py": "def fib(n):\n    return n\n"},
    ),
    TerminalTask(
        "program",
        """
        import subprocess
        def test_program():
            done = subprocess.run(["/app/bin/show", "one", "two"], capture_output=True, text=True)
            assert done.stdout == "one two\\n"
        def test_is_native():
            import os
            with open(os.environ["SECUREBENCH_WORKSPACE"] + "/bin/show", "rb") as file:
                assert file.read(4) == b"\\x7fELF"
        """,
        {"bin/show": ECHO},
        {"bin/show": "#!/bin/sh\necho one two\n"},
    ),
    TerminalTask(
        "database",
        """
        import sqlite3
        def test_total():
            database = sqlite3.connect("file:/app/shop.db?mode=ro&immutable=1", uri=True)
            assert database.execute("select amount from totals where name = 'all'").fetchone() == (977,)
        """,
        {"shop.db": _database(977)},
        {"shop.db": _database(976)},
    ),
    TerminalTask(
        "archive",
        """
        import tarfile
        def test_names():
            with tarfile.open("/app/out.tar") as archive:
                assert sorted(archive.getnames()) == ["a.txt", "b/c.txt"]
        """,
        {"out.tar": _archive("b/c.txt", "a.txt")},
        {"out.tar": _archive("a.txt")},
    ),
    TerminalTask(
        "settings",
        """
        set -e
        grep -q '^port = 8443$' /app/server.ini
        test "$(python3 /app/show_port.py)" = 8443
        """,
        {
            "server.ini": "[main]\nport = 8443\n",
            "show_port.py": "import configparser\nc = configparser.ConfigParser()\nc.read('/app/server.ini')\n"
            "print(c['main']['port'])\n",
        },
        {"server.ini": "[main]\nport = 80\n", "show_port.py": "print(8443)\n"},
        source="script",
    ),
    TerminalTask(
        "hello",
        """
        from pathlib import Path
        def test_hello_file_exists():
            assert Path("/app/hello.txt").exists()
        def test_hello_file_content():
            assert Path("/app/hello.txt").read_text().strip() == "Hello, world!"
        """,
        {"hello.txt": "Hello, world!\n"},
        {"hello.txt": "Hello!\n"},
        more_tests={
            "tests/run-tests.sh": dedent(
                """
                #!/bin/bash
                apt-get update
                apt-get install -y curl
                source $HOME/.local/bin/env
                uv init
                uv add pytest==8.4.1
                uv run pytest $TEST_DIR/test_outputs.py -rA
                if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
                """
            ).lstrip()
        },
        run_tests="tests/run-tests.sh",
    ),
    TerminalTask(
        "rewarded",
        """
        #!/bin/bash
        apt-get update
        curl -LsSf https://tools.example/uv/install.sh | sh
        source $HOME/.local/bin/env
        uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_it.py -rA
        if [ $? -eq 0 ]; then echo '{"reward": 1}' > /logs/verifier/reward.json; else echo '{"reward": 0}' > /logs/verifier/reward.json; fi
        """,
        {"total.txt": "77\n"},
        {"total.txt": "78\n"},
        source="script",
        more_tests={"tests/test_it.py": "def test_total():\n    assert int(open('/app/total.txt').read()) == 77\n"},
        reward=True,
    ),
)
