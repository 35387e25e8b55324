"""A01: nothing private is anywhere an agent can look, nor in anything we write or print.

A random marker stands in every private field of every family. A probe agent reads all it can reach (files,
environment, processes, memory, descriptors, mounts) and reports every marker it sees. The public marker, which
it must see, is the positive control."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path
from typing import Any

from tests.e2e.workbench import securebench

from securebench.benchmark_compiler import EVAL_VISIBILITY

PROBE = r"""
import os, re, stat
found = set()
def look(data): found.update(re.findall(rb"sbmark-[a-z]+-[0-9a-f]{16}", data))
def read(path):
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                while chunk := file.read(1 << 22): look(chunk)
    except (OSError, ValueError): pass
for top in sorted(set(os.listdir("/")) - {"usr", "proc", "sys", "bin", "lib", "lib64", "sbin", "lib32", "libx32"}):
    read("/" + top)
    for base, dirs, files in os.walk("/" + top):
        look("\n".join([base, *dirs, *files]).encode("utf-8", "surrogateescape"))
        for name in files: read(os.path.join(base, name))
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "maps", "mountinfo", "status"): read(f"/proc/{pid}/{name}")
    try:
        for number in os.listdir(f"/proc/{pid}/fd"): look(os.readlink(f"/proc/{pid}/fd/{number}").encode())
        if int(pid) != os.getpid():
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for line in maps:
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    try: memory.seek(start); look(memory.read(min(end - start, 1 << 24)))
                    except (OSError, ValueError, OverflowError): pass
    except OSError: pass
print("\n".join(sorted(marker.decode() for marker in found)))
print("Answer: 1")
"""


def _mark(kind: str) -> str:
    return f"sbmark-{kind}-{secrets.token_hex(8)}"


def _patch(path: str, old: str | None, new: str) -> str:
    added = "".join(f"+{line}\n" for line in new.split("\n"))
    count = len(new.split("\n"))
    if old is None:
        return f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{added}"
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,{count} @@\n-{old}\n{added}"


def _rows(private: str, public: str) -> list[dict[str, Any]]:
    """One row of every family with the marker in every private field, undeclared ones and files included."""
    extra = {"author_notes": {"deep": [private]}, "extra_file": {"path": "secret.txt"}}
    rows = [
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
            {"repo": "r", "base_commit": "c", "instructions": public},
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
                "mutants": [{"path": "secret.txt", "mount": f"mutants/{private}"}],
            },
        ),
    ]
    assert {family for family, _, _ in rows} == set(EVAL_VISIBILITY), "a new family needs a row here"
    for family, _, private_fields in rows:
        assert set(EVAL_VISIBILITY[family]) - set(private_fields) <= {"tolerance"}, (
            f"{family}: every field needs a marker"
        )
    assets = [{"path": "public.txt"}, {"path": "r"}]
    return [
        {"id": family, "family": family, "input": fields, "eval": hidden | extra, "assets": assets}
        for family, fields, hidden in rows
    ]


def _pack(directory: Path, private: str, public: str) -> Path:
    (directory / "hidden").mkdir()
    (directory / "assets" / "r").mkdir(parents=True)
    (directory / "assets" / "r" / "code.txt").write_text("the repository\n")
    (directory / "hidden" / "secret.txt").write_text(private)
    test = f"def test_it():\n    assert open('code.txt').read() == 'fixed {private}\\n'"
    (directory / "hidden" / "tests.patch").write_text(_patch(f"{private}/test_it.py", None, test))
    (directory / "assets" / "public.txt").write_text(public)
    (directory / "manifest.yaml").write_text("id: markers\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _rows(private, public)))
    tester = {
        "schema_version": "0.3",
        "run": {"id": "markers", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": ["/usr/bin/python3", "-c", PROBE]}},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    return directory / "tester.yaml"


def test_no_private_value_is_seen_by_an_agent_or_written_anywhere(bench: Any, tmp_path: Path) -> None:
    private, public = _mark("private"), _mark("public")
    config = _pack(tmp_path, private, public)
    done = securebench("run", "--config", config, "--progress", "json", "--show-agent-output", "--json")
    assert done.code == 0, done.err
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    records = [json.loads(line) for line in written["candidates.jsonl"].splitlines()]
    assert len(records) == len(EVAL_VISIBILITY)
    for record in records:
        assert public in record["producer_stdout"], f"the probe is blind on {record['task_id']}"
        assert private not in record["producer_stdout"]
    everything = b"\n".join([*written.values(), done.out.encode(), done.err.encode()])
    for form in _encodings(private):
        assert form not in everything


def test_no_private_value_is_printed_by_validate(bench: Any, tmp_path: Path) -> None:
    private, public = _mark("private"), _mark("public")
    _pack(tmp_path, private, public)
    for arguments in (["validate", tmp_path], ["validate", tmp_path, "--json"]):
        done = securebench(*arguments)
        assert done.code == 1, done.err  # a checker that is no script cannot be satisfied
        assert public not in done.out + done.err
        assert private not in done.out + done.err


def test_positive_control_a_secret_among_the_assets_is_found_by_the_probe(bench: Any, tmp_path: Path) -> None:
    private, public = _mark("private"), _mark("public")
    config = _pack(tmp_path, private, public)
    (tmp_path / "assets" / "public.txt").write_text(private)
    done = securebench("run", "--config", config, "--quiet", "--json")
    assert done.code == 0, done.err
    assert private in (tmp_path / "out" / "candidates.jsonl").read_text()


def _encodings(text: str) -> list[bytes]:
    raw = text.encode()
    base = [base64.b64encode(b"\0" * lead + raw)[4:20] for lead in range(3)]
    dumps = [raw.hex(separator).encode() for separator in (" ", ":")]
    return [raw, raw.upper(), raw.hex().encode(), raw.hex().upper().encode(), *dumps, *base, text.encode("utf-16-le")]
