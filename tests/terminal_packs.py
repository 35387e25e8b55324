"""A self-written pack of terminal tasks with everything that a row can say, to be written for other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WITH_PYTEST = """import random
from pathlib import Path

from securebench import worker


def test_program():
    number = random.randrange(1000)
    done = worker.run(["sh", "double.sh", str(number)], timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, str(2 * number).encode())


def test_input_is_untouched():
    assert Path("/app/numbers/list.txt").read_text() == Path("/tests/data/list.txt").read_text()
"""
SCRIPT = """#!/bin/bash
# Fails unless the total of the day stands in the file.
[ "$(cat /app/total.txt)" = "$(cat "$TEST_DIR/expected.txt")" ]
"""
FILES = {
    "assets/numbers/list.txt": "4\n38\n",
    "assets/tool.sh": "#!/bin/sh\necho tool\n",
    "hidden/double/test_double.py": WITH_PYTEST,
    "hidden/double/list.txt": "4\n38\n",
    "hidden/double/solution/double.sh": "echo $((2 * $1))\n",
    "hidden/double/wrong/double.sh": "echo 4\n",
    "hidden/total/test.sh": SCRIPT,
    "hidden/total/expected.txt": "42\n",
    "hidden/total/solve.sh": "total=0\nwhile read -r n; do total=$((total + n)); done < numbers/list.txt\necho $total > total.txt\n",
}
ASSETS = [{"path": "numbers", "read_only": False}, {"path": "tool.sh", "mount": "bin/tool.sh"}]
DOUBLE = {
    "id": "double",
    "family": "terminal_task",
    "input": {"instructions": "Write /app/double.sh: it prints twice its argument.\n"},
    "assets": ASSETS,
    "environment": {
        "timeout_seconds": 120,
        "resources": {"memory": 512 * 2**20 + 1, "cpus": 1.5, "pids": 100, "disk": "64m"},
        "network": {"allowed_domains": ["files.example.org"]},
    },
    "eval": {
        "checker": {
            "source": "pytest",
            "path": "double/test_double.py",
            "mount": "test_double.py",
            "timeout_seconds": 60,
        },
        "test_files": [{"path": "double/list.txt", "mount": "data/list.txt"}],
        "reference_workspace": {"path": "double/solution"},
        "mutants": [{"path": "double/wrong"}],
        "expected_state": {"double.sh": "there"},
    },
    "metadata": {"difficulty": "easy", "tags": ["shell"], "reviewed": None, "weight": 2},
}
TOTAL = {
    "id": "the total/1",
    "family": "terminal_task",
    "input": {"instructions": "Write the sum of numbers/list.txt to total.txt.", "context": "Whole numbers."},
    "assets": ASSETS,
    "eval": {
        "checker": {"source": "script", "path": "total/test.sh", "mount": "test.sh"},
        "test_files": [{"path": "total/expected.txt", "mount": "expected.txt"}],
        "reference_script": {"path": "total/solve.sh"},
    },
}
QUESTION = {
    "id": "question",
    "family": "short_answer",
    "input": {"question": "6 * 7?"},
    "eval": {"accepted_answers": [42]},
}


def write_terminal_pack(directory: Path, *rows: dict[str, Any], image: str | None = None) -> Path:
    environment = {"workdir": "/app"} | ({} if image is None else {"image": image})
    for path, text in FILES.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    (directory / "assets/tool.sh").chmod(0o755)
    manifest = {"id": "work", "version": 1, "defaults": {"environment": environment}}
    (directory / "manifest.yaml").write_text(json.dumps(manifest))
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory
