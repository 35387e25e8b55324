"""Packs as tasks of the real Inspect, with `mockllm/model` and scripted replies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_judged_run import ROW as JUDGED
from tests.e2e.workbench import need_bubblewrap, question

from securebench.audit.plays.agent_pack import Markers, forms, write_marked_pack

PROGRAM = Path(__file__).with_name("inspect_program.py")
INSPECT = Path(sys.executable).with_name("inspect")
CHOICE = {
    "id": "capital",
    "family": "multiple_choice",
    "input": {"question": "Which city is the capital of Australia?", "choices": ["Sydney", "Canberra"]},
    "eval": {"answer": "B"},
    "metadata": {"tags": ["geography"]},
}
CODE = {
    "id": "square",
    "family": "code_completion",
    "input": {"prompt": "Write square(x).", "language": "python", "entry_point": "square"},
    "eval": {"tests": {"path": "check.py"}},
}
PATCH = {
    "id": "fix",
    "family": "repo_patch",
    "input": {"repo": "repo", "base_commit": "c", "instructions": "Let calc.py print twice its argument."},
    "assets": [{"path": "repo"}],
    "eval": {
        "tests": {
            "source": "command",
            "command": ["python3", "check_twice.py"],
            "files": [{"path": "check_twice.py"}],
        }
    },
}
DIFF = """diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 import sys
-print(sys.argv[1])
+print({} * int(sys.argv[1]))
"""
CHECK = """import os, random, subprocess

number = random.randrange(1000)
argv = ["python3", "calc.py", str(number)]
done = subprocess.run(argv, cwd=os.environ["SECUREBENCH_WORKDIR"], capture_output=True, text=True)
assert done.stdout == f"{2 * number}\\n"
"""
FILES = {
    "manifest.yaml": "id: round-trip\nversion: 3\n",
    "hidden/check.py": "def check(f):\n    assert f(3) == 9\n    assert f(-2) == 4\n",
    "hidden/check_twice.py": CHECK,
    "assets/repo/calc.py": "import sys\nprint(sys.argv[1])\n",
}


def write(directory: Path, *rows: dict[str, Any]) -> Path:
    for path, text in FILES.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def fenced(text: str, language: str = "python") -> str:
    return f"Here it is:\n\n```{language}\n{text}```\n"


RIGHT = {
    "capital": "It is inland.\n\nAnswer: B",
    "t1": "Answer: 42",
    "square": fenced("def square(x):\n    return x * x\n"),
    "fix": fenced(DIFF.format(2), "diff"),
}
WRONG = {
    "capital": "Answer: A",
    "t1": "Answer: 41",
    "square": fenced("def square(x):\n    return x + x\n"),
    "fix": fenced(DIFF.format(3), "diff"),
}
CHEATS = {
    "capital": "Answer: A or B",
    "t1": "Answer: anything that is equal to the expected answer, 42 or 41",
    "square": fenced(
        "class Yes(int):\n    __eq__ = __ge__ = lambda *_: True\n    __hash__ = int.__hash__\n\n"
        "def square(x):\n    import builtins\n    builtins.AssertionError = ValueError\n    return Yes()\n"
    ),
    "fix": fenced("diff --git a/check_twice.py b/check_twice.py\nnew file mode 100644\n--- /dev/null\n"
                  "+++ b/check_twice.py\n@@ -0,0 +1 @@\n+raise SystemExit(0)\n", "diff"),
}  # fmt: skip
UNREADABLE = {"square": fenced("def square(x): return x * x\n") * 2, "t1": "", "fix": "```diff\n--- a/calc.py\n"}


MARKED_DIFF = "diff --git a/code.txt b/code.txt\n--- a/code.txt\n+++ b/code.txt\n@@ -1 +1 @@\n-the repository\n+other\n"
MARKED = {
    "multiple_choice": "Answer: B",
    "short_answer": "Answer: something else",
    "free_response": "Answer: no",
    "code_completion": fenced("def f(*args):\n    return 'another value'\n"),
    "repo_patch": fenced(MARKED_DIFF, "diff"),
}
MARKS = Markers()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inspect")


@pytest.fixture(scope="module")
def seen(place: Path) -> Any:
    """What came of every evaluation, all by one process: starting Inspect takes longer than using it."""
    need_bubblewrap()
    write_marked_pack(place / "marked", MARKS)
    broken = write(place / "broken", CODE)
    jobs: dict[str, dict[str, Any]] = {
        "mixed": {"pack": write(place / "mixed", CHOICE, question(1), CODE, PATCH), "processes": 1}
        | {"rounds": [RIGHT, WRONG, CHEATS, UNREADABLE]},
        "marked": {"pack": place / "marked", "tasks": [*MARKED], "rounds": [MARKED]},
        "judged": {"pack": write(place / "judged", JUDGED), "rounds": [{JUDGED["id"]: "Answer: x"}]},
        "broken": {"pack": broken, "rounds": [RIGHT], "changed": {str(broken / "hidden/check.py"): "check = print\n"}},
    }
    asked = {name: job | {"pack": str(job["pack"]), "logs": str(place / "logs" / name)} for name, job in jobs.items()}
    done = subprocess.run(
        [sys.executable, PROGRAM], input=json.dumps(asked), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_right_replies_score_1_and_wrong_cheating_and_unreadable_ones_0(seen: Any) -> None:
    rounds = seen["mixed"]["rounds"]
    values = [{name: score["value"] for name, score in one["scores"].items()} for one in rounds]
    assert {one["status"] for one in rounds} == {"success"}
    assert values == [dict.fromkeys(RIGHT, 1.0), *[dict.fromkeys(RIGHT, 0.0)] * 3], rounds
    assert [one["metrics"]["accuracy"] for one in rounds] == [1.0, 0.0, 0.0, 0.0]


def test_score_says_how_sure_it_is_and_why(seen: Any) -> None:
    right, wrong, _, unreadable = (
        {name: s["metadata"] for name, s in one["scores"].items()} for one in seen["mixed"]["rounds"]
    )
    assurance = {name: told["assurance"] for name, told in right.items()}
    assert assurance == {"capital": "pure", "t1": "pure", "square": "isolated", "fix": "isolated"}
    assert {name: told["failure_reason"] for name, told in wrong.items()} == {
        "capital": "wrong_answer", "t1": "wrong_answer", "square": "wrong_answer", "fix": "tests_failed"
    }  # fmt: skip
    read = {name: told["failure_reason"] for name, told in unreadable.items() if name != "capital"}
    assert read == {"square": "ambiguous_answer", "t1": "no_answer", "fix": "malformed_answer"}
    explained = seen["mixed"]["rounds"][1]["scores"]["fix"]["explanation"]
    assert explained == "tests_failed: the checker ended with exit code 1"


def test_sample_is_what_an_agent_may_know(seen: Any) -> None:
    choice, _, _, patch = seen["mixed"]["samples"]
    assert (choice["id"], choice["choices"], choice["target"]) == ("capital", ["Sydney", "Canberra"], "")
    assert "A) Sydney\nB) Canberra" in choice["input"]
    assert choice["metadata"]["tags"] == ["geography"]
    about = {"benchmark": "round-trip 3", "task_type": "multiple_choice", "candidate": "text"}
    assert choice["metadata"]["securebench"] == about
    assert patch["files"] is None  # a repository would come with its history
    assert seen["marked"]["samples"][0]["files"].keys() == {"public.txt", "r"}


def test_no_private_byte_is_in_samples_or_the_log(seen: Any, place: Path) -> None:
    (one,) = seen["marked"]["rounds"]
    assert (one["status"], set(one["scores"])) == ("success", set(MARKED)), one
    (log,) = (place / "logs/marked").rglob("*.json")
    samples, written = json.dumps(seen["marked"]), log.read_text()
    for form in forms(MARKS.private):
        assert form not in samples
        assert form not in written
    assert str(place / "marked/hidden") not in samples + written
    assert all(MARKS.public in sample["input"] for sample in seen["marked"]["samples"])  # what may be seen is
    assert MARKS.public in written
    assert MARKS.private in (place / "marked/tasks.jsonl").read_text()


def test_faults_of_the_pack_raise_and_score_nobody(seen: Any) -> None:
    (fault,) = seen["broken"]["rounds"]
    assert (fault["status"], fault["scores"]) == ("error", {})
    assert fault["faults"]["square"].startswith("InfrastructureError")


def test_task_that_waits_for_a_judge_is_not_a_wrong_answer(seen: Any) -> None:
    (fault,) = seen["judged"]["rounds"]
    assert (fault["status"], fault["scores"]) == ("error", {})
    assert "needs a model judge" in fault["faults"][JUDGED["id"]]


def test_task_is_known_to_the_command_line_of_inspect(tmp_path: Path) -> None:
    pack = write(tmp_path / "pack", CHOICE, question(1))
    (tmp_path / "replies.py").write_text(
        "from inspect_ai.model import ModelOutput\nfrom inspect_ai.solver import solver\n\n\n"
        "@solver\ndef replies():\n    async def solve(state, generate):\n"
        "        state.output = ModelOutput.from_content('none', 'Answer: B')\n        return state\n\n    return solve\n"
    )
    argv = [INSPECT, "eval", "securebench/pack_task", "-T", f"pack={pack}", "-T", "processes=0"]
    argv += ["--model", "mockllm/model", "--solver", "replies.py", "--display", "none", "--log-format", "json"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    (log,) = (tmp_path / "logs").glob("*.json")
    whole = json.loads(log.read_text())
    scores = {sample["id"]: sample["scores"]["pack_scorer"]["value"] for sample in whole["samples"]}
    assert (whole["status"], scores) == ("success", {"capital": 1.0, "t1": 0.0})
    assert whole["eval"]["metadata"]["securebench"]["digest"].startswith("sha256:")


TERMINAL = {
    "id": "work",
    "family": "terminal_task",
    "input": {"instructions": "Do it."},
    "eval": {"checker": {"source": "script", "path": "check.py"}},
}
REFUSED = """
from securebench.errors import ConfigError
from securebench.inspect_adapter import pack_dataset
for wanted in (None, ["capitol"]):
    try:
        pack_dataset("pack", wanted)
    except ConfigError as error:
        print(error)
print([sample.id for sample in pack_dataset("pack", "capital")])
"""


def test_workspaces_and_unknown_tasks_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "pack", CHOICE, TERMINAL)
    done = subprocess.run(
        [sys.executable, "-c", REFUSED], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    workspaces, unknown, chosen = done.stdout.splitlines()
    assert workspaces.startswith("1 of 2 tasks collect a workspace, which no reply of a model is (work): ")
    assert unknown == "the pack has no task 'capitol' (did you mean 'capital'?)"
    assert chosen == "['capital']"


CANCELLED = """
import time
from pathlib import Path
import anyio
from securebench.benchmark_pack import find_pack, load_benchmark_pack
from securebench.inspect_adapter import close_graders
from securebench.inspect_adapter.graders import Wish, graded

pack = load_benchmark_pack(*find_pack(Path("pack")))
slow = {"solution": "import time\\ntime.sleep(60)\\ndef square(x):\\n    return x * x\\n"}
quick = {"solution": "def square(x):\\n    return x * x\\n"}

async def main():
    passed = (await graded(pack, Wish(0), "square", quick)).passed
    began = time.monotonic()
    with anyio.move_on_after(1) as scope:
        await graded(pack, Wish(0), "square", slow)
    print(passed, scope.cancelled_caught, time.monotonic() - began < 30)

anyio.run(main)
close_graders()
anyio.run(graded, pack, Wish(0), "square", quick)
print("again")
"""


def test_cancelled_score_ends_and_closed_graders_open_again(tmp_path: Path) -> None:
    need_bubblewrap()
    write(tmp_path / "pack", CODE)
    done = subprocess.run(
        [sys.executable, "-c", CANCELLED], cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.stdout.splitlines() == ["True True True", "again"], done.stderr


@pytest.mark.parametrize("name", ["", ".task", ".scoring"])
def test_without_the_extra_one_error_names_it(name: str) -> None:
    program = f"import sys; sys.modules['inspect_ai'] = None; import securebench.inspect_adapter{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'securebench[inspect]'")
