"""Where the checker runs, nothing of the candidate's is executed, however the checker is written: what is tried beside
the attacks of C50 in the catalogue, which have their controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.attacks.terminal.judging import Content, judge, make_pack
from tests.e2e.workbench import need_bubblewrap

from securebench.errors import CandidateError, FailureReason
from securebench.sandboxes.bubblewrap import BubblewrapSandbox
from securebench.verifiers.base import Assurance, VerificationResult

LEAVE = "import os\nos._exit(0)\n"
FORGE = (
    "import os\n"
    "try:\n"
    '    with open("/tmp/.securebench/report", "w") as f:\n'
    '        f.write(\'{"event": "test", "id": "x", "when": "call", "outcome": "passed"}\\n{"event": "end"}\\n\')\n'
    "    for name in os.listdir('/proc'):\n"
    "        if name.isdigit() and b'check_pytest' in open(f'/proc/{name}/cmdline', 'rb').read():\n"
    "            os.kill(int(name), 9)\n"
    "except OSError:\n"
    "    pass\n"
)
RUN = "import subprocess, sys\ndef test_it():\n    {}\n"


@dataclass(frozen=True)
class Case:
    name: str
    checker: str
    workspace: Mapping[str, Content]
    source: str = "script"
    more: Mapping[str, str] = field(default_factory=dict)

    def judge(self, directory: Path) -> VerificationResult:
        need_bubblewrap()
        name = "check.sh" if self.source == "script" else "test_it.py"
        checker = {"source": self.source, "path": name, "timeout_seconds": 60}
        evaluation = {"checker": checker, "test_files": [{"path": path} for path in self.more]}
        pack = make_pack(directory / "pack", {name: self.checker, **self.more}, evaluation)
        return judge(pack, self.workspace, BubblewrapSandbox())


LEADS_AWAY = (
    Case("Python by its own path", RUN.format("assert subprocess.run([sys.executable, '/app/x.py']).returncode == 3"), {"x.py": FORGE}, "pytest"),
    Case("first line switches the stand-in off", "/app/x.py\n", {"x.py": "#!/usr/bin/env -S SECUREBENCH_WORKDIR=/nowhere python3\n"}),
    Case("first line loads a library", "/app/x.py\n", {"x.py": "#!/usr/bin/env -S LD_PRELOAD=/app/evil.so python3\n"}),
    Case("first line names a planted env", "/app/x\n", {"x": "#!/app/env python3\n", "env": "#!/bin/sh\nexit 0\n"}),
    Case("pickle reaches modules", "import pickle\ndef test_it():\n    pickle.load(open('/app/p', 'rb'))\n", {"p": b"\x80\x04ccollections\n_sys.modules.get\n(X\x02\x00\x00\x00ostR."}, "pytest"),
    Case("configuration where the checker stands", "cd /app && pytest -q /tests/test_no.py\n", {"conftest.py": LEAVE, "pytest.ini": "[pytest]\naddopts = --collect-only\n"}, more={"test_no.py": "def test_it():\n    assert 0\n"}),
    Case("a refusal taken for the candidate's own", "import sys\nsys.path.insert(0, '/app')\ndef test_it():\n    try:\n        import lib\n        lib.parse('bad')\n    except Exception:\n        return\n    assert 0\n", {"lib.py": "def parse(text):\n    return text\n"}, "pytest"),
    Case("argument that no command can have", "from securebench import worker\ndef test_it():\n    worker.run(['echo', open('/app/x').read()])\n", {"x": "a\0b"}, "pytest"),
)  # fmt: skip


@pytest.mark.parametrize("case", LEADS_AWAY, ids=lambda case: case.name)
def test_candidate_code_is_not_executed_beside_the_verdict(tmp_path: Path, case: Case) -> None:
    result = case.judge(tmp_path)
    assert (result.passed, result.failure_reason) == (False, FailureReason.TESTS_FAILED), result.stdout
    assert result.assurance is Assurance.ISOLATED


PROGRAM = {
    "run.sh": '#!/bin/bash\nset -e\npython3 "$(dirname "$0")"/square.py $1\n',
    "square.py": "import os, sys\nassert not os.path.exists('/tests')\nprint(int(sys.argv[1]) ** 2)\n",
    "numbers.txt": "1\n2\n3\n",
    "result.json": '{"mean": 3.5}\n',
    "command.txt": "python3 square.py 7\n",
}
HONEST = (
    Case(
        "a shell script in the workspace",
        "set -e\ncd /app\n./run.sh 3 | grep -q 9\ntest $(python3 square.py 4) = 16\nbash run.sh 5 | grep -q 25\n"
        "X=$(sh -c 'cd /app && ./run.sh 2'); [ \"$X\" = 4 ]\npython3 -m py_compile square.py\n"
        "python3 -m json.tool result.json > /dev/null\nawk '{s+=$1} END {exit s!=6}' numbers.txt\n"
        "perl -ne 'print if /2/' numbers.txt | grep -q 2\nprintf '1\\n2\\n3\\n' | diff - numbers.txt\n"
        'python3 -c \'import json; assert json.load(open("/app/result.json"))["mean"] == 3.5\'\n'
        "python3 - <<'E'\nassert open('/app/numbers.txt').read() == '1\\n2\\n3\\n'\nE\n",
        PROGRAM,
    ),
    Case(
        "helpers, fixtures and a command from a file",
        "import subprocess, sys\nfrom helper import SEVEN\n"
        "def test_it(number, tmp_path):\n"
        "    (tmp_path / 'in').write_text('x')\n"
        "    text = open('/app/command.txt').read()\n"
        "    done = subprocess.run(text, shell=True, cwd='/app', capture_output=True, text=True)\n"
        "    assert done.stdout == f'{SEVEN * SEVEN}\\n'\n"
        "    done = subprocess.run([sys.executable, '/app/square.py', str(number)], capture_output=True, text=True)\n"
        "    assert done.stdout == '81\\n'\n"
        "    assert subprocess.run(['bash', '/tests/lib.sh'], capture_output=True, text=True).stdout == '42\\n'\n",
        PROGRAM,
        "pytest",
        {
            "helper.py": "SEVEN = 7\n",
            "conftest.py": "import pytest\n@pytest.fixture\ndef number():\n    return 9\n",
            "lib.sh": "source /tests/more.sh\necho $V\n",
            "more.sh": "V=42\n",
        },
    ),
)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_honest_checkers_of_every_style_work(tmp_path: Path, case: Case) -> None:
    result = case.judge(tmp_path)
    assert result.passed, (result.stdout, result.stderr)


def test_workspace_that_does_not_fit_where_it_runs_is_the_candidates_failure(tmp_path: Path) -> None:
    def holes(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(64 * 2**20)

    need_bubblewrap()
    evaluation = {"checker": {"source": "script", "path": "check.sh", "timeout_seconds": 60}}
    pack = make_pack(tmp_path / "pack", {"check.sh": "true\n"}, evaluation, resources={"disk": "32MiB"})
    with pytest.raises(CandidateError, match="need"):
        judge(pack, {"big": holes}, BubblewrapSandbox())


def test_value_that_looks_like_bytes_stays_what_it_is(tmp_path: Path) -> None:
    checker = "from securebench import worker\ndef test_it():\n    assert worker.call('l.py', 'f') == {'latin1': '€'}\n"
    assert Case("", checker, {"l.py": "def f(): return {'latin1': '€'}\n"}, "pytest").judge(tmp_path).passed
