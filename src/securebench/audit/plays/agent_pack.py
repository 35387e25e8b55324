"""A pack with one task of every family and a random marker in every private field, for agents that look for it."""

from __future__ import annotations

import base64
import io
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from securebench.benchmark_compiler import compile_benchmark_pack
from securebench.benchmark_pack import load_benchmark_pack
from securebench.tasks import SecureBenchTask
from securebench.workspaces._git.objects import FILE, TreeItem, encode_tree
from securebench.workspaces._git.pack_writer import PackWriter

REPOSITORY = "r"


def _mark(kind: str) -> str:
    return f"sbmark-{kind}-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class Markers:
    """What nobody can guess: `private` must not be seen by an agent, `public` must."""

    private: str = field(default_factory=lambda: _mark("private"))
    public: str = field(default_factory=lambda: _mark("public"))


def forms(text: str) -> tuple[str, ...]:
    """A text as it may stand somewhere: plain, in hexadecimal, in base64 wherever it begins."""
    raw = text.encode()
    inner = [base64.b64encode(b"\0" * lead + raw).decode()[4:20] for lead in range(3)]
    return (text, text.upper(), raw.hex(), raw.hex().upper(), raw.hex(" "), raw.hex(":"), *inner)


def _patch(path: str, old: str | None, new: str) -> str:
    lines = new.split("\n")
    added = "".join(f"+{line}\n" for line in lines)
    if old is None:
        head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        return f"{head}@@ -0,0 +1,{len(lines)} @@\n{added}"
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,{len(lines)} @@\n-{old}\n{added}"


def marked_rows(marks: Markers) -> list[dict[str, Any]]:
    """One row of every family with the marker in every private field, undeclared ones and files included."""
    private, public = marks.private, marks.public
    extra = {"author_notes": {"deep": [private]}, "extra_file": {"path": "secret.txt"}}
    rows: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("multiple_choice", {"question": public, "choices": ["x", "y"]}, {"answer": 0}),
        ("short_answer", {"question": public}, {"accepted_answers": [private, f"{private} too"]}),
        (
            "free_response",
            {"prompt": public},
            {
                "rubric": {
                    "type": "contains_any",
                    "accepted_answers": [private],
                    "rejected_answers": [f"no {private}"],
                },
                "reference_answer": f"reference {private}",
            },
        ),
        (
            "code_completion",
            {"prompt": public, "language": "python"},
            {
                "tests": {"source": "inline", "code": f"assert f() == {private!r}"},
                "reference_solution": f"def f(): return {private!r}",
                "mutants": [f"def f(): return {private!r} + 'x'", {"path": "secret.txt"}],
                "canonical_solution": {"path": "secret.txt"},
            },
        ),
        (
            "repo_patch",
            {"repo": REPOSITORY, "base_commit": "c", "instructions": public},
            {
                "tests": {
                    "source": "pytest",
                    "fail_to_pass": [f"{private}/test_it.py::test_it"],
                    "test_patch": {"path": "tests.patch"},
                },
                "candidate_policy": {"allow_paths": [private]},
                "gold_patch": _patch("code.txt", "the repository", f"fixed {private}"),
                "mutants": [_patch("code.txt", "the repository", f"mutated {private}")],
            },
        ),
        (
            "terminal_task",
            {"instructions": public},
            {
                "checker": {"source": "script", "path": "secret.txt"},
                "needed_commands": [private],
                "run_tests": {"path": "secret.txt", "mount": f"{private}.sh"},
                "test_files": [{"path": "secret.txt"}],
                "expected_state": {"state": private},
                "reference_workspace": {"path": "secret.txt"},
                "reference_script": {"path": "secret.txt"},
                "mutants": [{"path": "secret.txt", "mount": f"mutants/{private}"}],
            },
        ),
    ]
    assets = [{"path": "public.txt"}, {"path": REPOSITORY}]
    return [
        {"id": family, "family": family, "input": fields, "eval": hidden | extra, "assets": assets}
        for family, fields, hidden in rows
    ]


def write_marked_pack(directory: Path, marks: Markers, environment: Mapping[str, Any] | None = None) -> None:
    """The pack on disk: `manifest.yaml`, `tasks.jsonl`, `hidden/` and `assets/`."""
    (directory / "hidden").mkdir(parents=True)
    (directory / "assets" / REPOSITORY).mkdir(parents=True)
    (directory / "assets" / REPOSITORY / "code.txt").write_text("the repository\n")
    (directory / "assets" / "public.txt").write_text(marks.public)
    (directory / "hidden" / "secret.txt").write_text(marks.private)
    test = f"def test_it():\n    assert open('code.txt').read() == 'fixed {marks.private}\\n'"
    (directory / "hidden" / "tests.patch").write_text(_patch(f"{marks.private}/test_it.py", None, test))
    (directory / "manifest.yaml").write_text("id: markers\nversion: 1\n")
    write_rows(directory, [row | {"environment": dict(environment or {})} for row in marked_rows(marks)])


def read_rows(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "tasks.jsonl").read_text().splitlines()]


def write_rows(directory: Path, rows: list[dict[str, Any]]) -> None:
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def marked_task(directory: Path, family: str) -> SecureBenchTask:
    """The task of a family, compiled as every task is. Raises PackError."""
    pack = load_benchmark_pack(directory / "manifest.yaml", directory / "tasks.jsonl")
    return next(task for task in compile_benchmark_pack(pack) if task.task_type == family)


def bundle_with_a_future(marks: Markers) -> tuple[bytes, str]:
    """A git bundle whose base commit is innocent, and that commit's id. The marker stands in all that came later: a
    commit's message and file, the names of a branch and a tag, and a file that no commit holds any more."""
    file = io.BytesIO()
    pack = PackWriter(file)

    def commit(text: str, message: str, *parents: bytes) -> bytes:
        blob = pack.add(b"blob", text.encode())
        tree = pack.add(b"tree", encode_tree([TreeItem(b"code.txt", FILE, blob)]))
        lines = [f"tree {tree.hex()}", *(f"parent {parent.hex()}" for parent in parents)]
        lines += [f"{role} A <a@example.org> 1700000000 +0000" for role in ("author", "committer")]
        return pack.add(b"commit", "\n".join([*lines, "", message, ""]).encode())

    base = commit(f"the repository {marks.public}\n", "the base")
    fix = commit(f"fixed {marks.private}\n", f"Fix it: {marks.private}", base)
    pack.add(b"blob", f"once fixed otherwise: {marks.private}\n".encode())
    pack.finish()
    refs = {"heads/main": base, f"heads/fix-{marks.private}": fix, f"tags/{marks.private}": fix}
    header = "# v2 git bundle\n" + "".join(f"{at.hex()} refs/{name}\n" for name, at in refs.items()) + "\n"
    return header.encode() + file.getvalue(), base.hex()
