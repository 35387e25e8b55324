"""Self-written task directories as Harbor and Terminal-Bench have them, and agents that do the work, nothing, or cheat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TEST_SH = """#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://tools.example/uv/install.sh | sh
source $HOME/.local/bin/env
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
TOML = """schema_version = "1.4"

[task]
name = "acme/sum"
keywords = ["tables"]

[metadata]
difficulty = "easy"
category = "data"

[verifier]
timeout_sec = 90.0

[agent]
timeout_sec = 45.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 512
storage_mb = 128
"""
TEST_OUTPUTS = """import json
from pathlib import Path


def test_total():
    wanted = json.loads(Path("/tests/data/expected.json").read_text())["total"]
    assert int(Path("/app/total.txt").read_text()) == wanted


def test_input_is_untouched():
    assert Path("/app/data/sales.csv").read_text().count("\\n") == 4
"""


def harbor(base: str) -> dict[str, str]:
    """A task whose Dockerfile can be read without building it."""
    return {
        "task.toml": TOML,
        "instruction.md": "Add up the column `amount` of /app/data/sales.csv and write the sum to /app/total.txt.\n",
        "environment/Dockerfile": f"# the base has a shell\nFROM {base}\n\nWORKDIR /app\n"
        'COPY data/ ./data/\nCOPY --chmod=755 count.sh /app/bin/\nCMD ["sleep", "infinity"]\n',
        "environment/data/sales.csv": "name,amount\na,40\nb,2\nc,58\n",
        "environment/count.sh": "#!/bin/sh\nwc -l < data/sales.csv\n",
        "tests/test.sh": TEST_SH,
        "tests/test_outputs.py": TEST_OUTPUTS,
        "tests/data/expected.json": '{"total": 100}\n',
        "solution/solve.sh": "#!/bin/bash\nset -e\ntotal=0\n"
        'while IFS=, read -r name amount; do [ "$amount" = amount ] || total=$((total + amount)); done < data/sales.csv\n'
        'source "$(dirname "$0")/write.sh"\n',
        "solution/write.sh": "echo $total > /app/total.txt\n",
    }


def terminal_bench(base: str) -> dict[str, str]:
    """A task in the older layout, with everything in one directory and a compose file."""
    return {
        "task.yaml": "instruction: |-\n  Write a program /app/double.sh: it prints twice its argument.\n"
        "author_name: somebody\ndifficulty: easy\ncategory: programming\ntags:\n  - shell\nparser_name: pytest\n"
        "max_agent_timeout_sec: 60.0\nmax_test_timeout_sec: 90.0\n",
        "Dockerfile": f"FROM {base}\nWORKDIR /app\nCOPY . /app\n",
        "docker-compose.yaml": "services:\n  client:\n    build:\n      dockerfile: Dockerfile\n"
        "    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n"
        '    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n    command: [ "sh", "-c", "sleep infinity" ]\n'
        "    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n    volumes:\n"
        "      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\n",
        "run-tests.sh": "#!/bin/bash\nsource $HOME/.local/bin/env\nuv init\nuv add pytest==8.4.1\n"
        "uv run pytest $TEST_DIR/test_outputs.py -rA\n",
        "tests/test_outputs.py": "import random\nimport subprocess\n\n\ndef test_double():\n"
        "    number = random.randrange(1000)\n"
        "    done = subprocess.run(['/app/double.sh', str(number)], capture_output=True, text=True)\n"
        "    assert done.stdout.strip() == str(2 * number)\n",
        "solution.sh": "printf '#!/bin/sh\\necho $((2 * $1))\\n' > /app/double.sh\nchmod +x /app/double.sh\n",
        "notes.txt": "Arguments are whole numbers.\n",
    }


def built(base: str) -> dict[str, str]:
    """A task whose image has to be built."""
    return harbor(base) | {
        "environment/Dockerfile": f"FROM {base}\nWORKDIR /app\nCOPY data/ ./data/\n"
        "RUN sed -i s/58/68/ data/sales.csv && echo 2026 > /etc/year\n",
        "tests/data/expected.json": '{"total": 2136}\n',
        "solution/write.sh": "echo $((total + $(cat /etc/year))) > /app/total.txt\n",
        "instruction.md": "Add up the amounts of /app/data/sales.csv and the year in /etc/year; write it to /app/total.txt.\n",
    }


CHEATS: Mapping[str, str] = {
    "reward": "mkdir -p logs/verifier; echo 1 > logs/verifier/reward.txt; echo 1 > /tmp/reward.txt;"
    " mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt; true",
    "tests": "mkdir -p tests; echo 'def test_ok(): pass' > tests/test_outputs.py; cp -r tests / 2>/dev/null; true",
    "runner": "printf 'import os\\nos._exit(0)\\n' | tee conftest.py sitecustomize.py pytest.py > /dev/null;"
    " printf '[pytest]\\naddopts=--collect-only\\n' > pytest.ini; mkdir -p bin; printf '#!/bin/sh\\nexit 0\\n' > bin/pytest;"
    " chmod +x bin/pytest",
    "link": "ln -s /tests/data/expected.json total.txt; ln -s /app/total.txt double.sh",
}
"""What agents try in `/app` instead of the work."""


def lay(directory: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
        if text.startswith("#!"):
            (directory / path).chmod(0o755)
    return directory
