"""Samples in other layouts than lines: told apart by what they hold, read under bounds, refused with their place."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from securebench._canonical import digest_bytes
from securebench.errors import ConfigError
from securebench.families.base import CandidateKind
from securebench.harnesses.sample_file import SampleFile, open_samples
from securebench.harnesses.sample_layouts import base, inspect_logs, zip_members
from securebench.harnesses.sample_layouts.documents import Shape, shape_of

KINDS = {
    "a": CandidateKind.CODE,
    "HumanEval/0": CandidateKind.CODE,
    "t": CandidateKind.TEXT,
    "7": CandidateKind.TEXT,
    "p": CandidateKind.PATCH,
    "q": CandidateKind.PATCH,
    "w": CandidateKind.WORKSPACE,
}


def texts(samples: SampleFile) -> dict[str, list[Any]]:
    """What is there, by task and in the order of attempts."""
    found: dict[str, list[Any]] = {}
    for task in KINDS:
        for attempt in range(1, samples.count(task) + 1):
            line = samples.line(task, attempt)
            assert line is not None
            value = json.loads(line.data)
            found.setdefault(task, []).append(
                next(value[key] for key in value if key not in ("task_id", "instance_id"))
            )
    return found


def read(path: Path) -> dict[str, list[Any]]:
    with open_samples(path, KINDS) as samples:
        return texts(samples)


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught, open_samples(path, KINDS):
        pass
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


def write(path: Path, data: Any, indent: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data, indent=indent).encode())
    return path


# One document


def prediction(task: str, patch: str | None = "diff", **more: Any) -> dict[str, Any]:
    return {"instance_id": task, "model_patch": patch, "model_name_or_path": "m"} | more


@pytest.mark.parametrize("indent", [None, 2])
def test_list_of_predictions_is_read(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path / "preds.json", [prediction("p", "1"), prediction("q", None), prediction("p", "2")], indent)
    with open_samples(path, KINDS) as samples:
        assert texts(samples) == {"p": ["1", "2"], "q": [None]}
        assert samples.digest == digest_bytes(path.read_bytes())
        line = samples.line("p", 2)
        assert line is not None
        assert line.number == (1 if indent is None else 12)  # where it stands in the document


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("named", [True, False])
def test_predictions_by_id_are_read(tmp_path: Path, indent: int | None, named: bool) -> None:
    value = {task: prediction(task, f"of {task}") for task in ("p", "q")}
    if not named:
        value = {task: {"model_patch": one["model_patch"]} for task, one in value.items()}
    path = write(tmp_path / "preds.json", value, indent)
    assert read(path) == {"p": ["of p"], "q": ["of q"]}
    packed = write(tmp_path / "packed", gzip.compress(path.read_bytes()))
    with open_samples(path, KINDS) as one, open_samples(packed, KINDS) as other:
        assert one.digest == other.digest


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'[{"instance_id": "p", "model_patch": "x"},\n\n 7]', ":3: expected an object, found"),
        (b'[{"instance_id": "p", "model_patch": "x"},\n{"instance_id": "zz", "model_patch": "x"}]', ":2: task_id: the"),
        (b'[{"instance_id": "p",\n "model_patch": NaN}]', ":1: NaN is not allowed"),
        (b'[{"instance_id": "p", "model_patch": "x"}', ":1: not JSON: Expecting ']'"),
        (b'[{"instance_id": "p", "model_patch": "x"}] x', ":1: not JSON: Extra data"),
        (b'[{"instance_id": "p", "model_patch": "x"},]', ":1: not JSON: Expecting value"),
        (b'[{"instance_id": "p", "model_patch": "x', ":1: not JSON: Unterminated string"),
        (b'[{"instance_id": "p", "model_patch": "\xff"}]', ":1: not UTF-8: byte 0xff"),
        (b"[" * 100_000, ":1: nested too deeply"),
        (b"[]", ": holds no sample"),
        (b'{"p": {"model_patch": "x"},\n"p": {"model_patch": "y"}}', ":2: duplicate key 'p'"),
        (b'{"p": {"model_patch": "x", "instance_id": "q"}}', ":1: stands under 'p' and names another task itself"),
        (b'{"p": {"model_patch": "x"},\n"q": "y"}', ":2: 'q': expected an object with model_patch"),
        (b'{"p": {"model_patch": "x"}\n"q": {"model_patch": "x"}}', ":2: not JSON: Expecting '}'"),
        (b'{"w": {"solution": "x"}}', ":1: task_id: this task collects a workspace"),
    ],
)
def test_what_is_wrong_with_a_document_is_told_with_its_line(tmp_path: Path, data: bytes, told: str) -> None:
    found = problems(write(tmp_path / "preds.json", data))
    assert any(one.startswith(told) for one in found), found


@pytest.mark.parametrize(
    ("head", "shape"),
    [
        (b'{"meta": {"a": 1}, "task_id": "t", "solution": "x"}\n', Shape.LINES),
        (b'{"version": 2, "task_id": "t", "solution": "x"}\n', Shape.LINES),
        (b'{"task_id": "t", "solution": "x"', Shape.LINES),
        (b"{}\n", Shape.LINES),
        (b"", Shape.LINES),
        (b'\n\n{"a": {"model_patch": "x"}}', Shape.KEYED),
        (b'{\n "a": {\n', Shape.KEYED),
        (b'{\n  "version": 2,\n  "status"', Shape.INSPECT),
        (b'{"version": 2, "status": "success", "eval": {}, "samples": []}', Shape.INSPECT),
        (b'{"eval": {"created": "2026"}, "plan": {}, "version": 2}', Shape.INSPECT),
        (b'{\n  "eval": {\n    "created"', Shape.INSPECT),
        (b'{"eval": {"created": "2026"}, "samples": [{"id": ', Shape.INSPECT),
        (b" \n [", Shape.LIST),
    ],
)
def test_layout_is_told_by_its_beginning(head: bytes, shape: Shape) -> None:
    assert shape_of(head) is shape


def test_part_of_a_document_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securebench.harnesses.sample_layouts.documents.MAX_LINE", 1000)
    monkeypatch.setattr("securebench.harnesses.sample_layouts.json_parts.CHUNK", 256)
    path = write(tmp_path / "preds.json", [prediction("p"), prediction("p", "x" * 100_000)])
    assert problems(path) == [":1: a part is longer than 1000 characters"]


def test_parts_may_be_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the bytes come: within a number, an escape, a character of several bytes, a literal."""
    value = [
        prediction("p", '\u00e9\u20ac\U0001f600 \\ " \n', n=[-12.5e3, True, None, 10**30]),
        prediction("q", "é" * 50),
    ]
    whole = read(write(tmp_path / "preds.json", value))
    spelt = write(tmp_path / "spelt.json", json.dumps(value, ensure_ascii=False, indent=1).encode())
    for size in (1, 2, 3, 7):
        monkeypatch.setattr("securebench.harnesses.sample_layouts.json_parts.CHUNK", size)
        assert read(tmp_path / "preds.json") == read(spelt) == whole


def test_large_document_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "preds.json"
    with path.open("wb") as file:
        file.write(b"[")
        for number in range(3000):
            file.write((b"," if number else b"") + json.dumps(prediction("p", "x" * 20_000)).encode())
        file.write(b"]")
    tracemalloc.start()
    with open_samples(path, KINDS) as samples:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert samples.count("p") == 3000
    assert path.stat().st_size > 60e6
    assert peak < 45e6  # of which the first look takes a line's most


# Logs of Inspect


def sample(task: str | int, epoch: int, text: str | None, **more: Any) -> dict[str, Any]:
    """As Inspect writes it, without what has no bearing here."""
    message = {"role": "assistant", "content": text, "source": "generate"}
    choices = [] if text is None else [{"message": message, "stop_reason": "stop"}]
    output = {"model": "mockllm/model", "choices": choices, "completion": text or ""}
    return {"id": task, "epoch": epoch, "input": "?", "target": "x", "messages": [], "output": output} | more


SAMPLES = [
    sample("t", 2, "second"),
    sample(7, 1, "seven"),
    sample("t", 1, "first"),
    sample("a", 1, None, error={"message": "no connection", "traceback": ""}),
    sample("p", 1, "```diff\nx\n```\n", scores={"s": {"value": float("nan")}}),
]
READ = {"a": [None], "t": ["first", "second"], "7": ["seven"], "p": ["```diff\nx\n```\n"]}


def log(samples: list[Any]) -> dict[str, Any]:
    head = {"version": 2, "status": "success", "eval": {"task": "demo", "model": "m"}, "plan": {}}
    return head | {"results": {"scores": [{"value": float("inf")}]}, "samples": samples}


def archive(path: Path, samples: list[Any], method: int = zipfile.ZIP_DEFLATED, header: str = "header.json") -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("_journal/start.json" if header == "header.json" else header, "{}")
        for one in samples:
            file.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        file.writestr("summaries.json", "[]")
        file.writestr(header, "{}") if header == "header.json" else None
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_json_log_of_inspect_is_read_in_the_order_of_epochs(tmp_path: Path, indent: int | None) -> None:
    path = write(tmp_path / "log.json", log(SAMPLES), indent)
    with open_samples(path, KINDS) as samples:
        assert texts(samples) == READ
        assert samples.digest == digest_bytes(path.read_bytes())


@pytest.mark.parametrize("packed", [False, True])
def test_candidate_that_a_log_holds_exactly_is_taken_as_it_is(tmp_path: Path, packed: bool) -> None:
    exact = [("a", "solution", "return 1"), ("p", "model_patch", "-a\r\n+b\r\n"), ("t", "solution", "")]
    ours = [sample(task, 1, "```\nother\n```", metadata={"securebench": {key: text}}) for task, key, text in exact]
    theirs = [sample("t", 2, "said", metadata={"securebench": {"family": "short_answer"}}), sample(7, 1, "seven")]
    whole = [*ours, *theirs]
    path = archive(tmp_path / "log.eval", whole) if packed else write(tmp_path / "log.json", log(whole))
    with open_samples(path, KINDS) as samples:
        lines = {(task, n): samples.line(task, n) for task, n in (("a", 1), ("p", 1), ("t", 1), ("t", 2), ("7", 1))}
    found = {name: json.loads(line.data) for name, line in lines.items() if line is not None}
    assert found == {(task, 1): {"task_id": task, key: text} for task, key, text in exact} | {
        ("t", 2): {"task_id": "t", "model_reply": "said"},
        ("7", 1): {"task_id": 7, "model_reply": "seven"},
    }


@pytest.mark.parametrize("wrong", [{"solution": "x", "model_patch": "y"}, {"solution": None}, {"model_patch": ["x"]}])
def test_log_that_holds_no_one_exact_candidate_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = write(tmp_path / "log.json", log([sample("t", 1, "said", metadata={"securebench": wrong})]))
    assert problems(path) == [":1: metadata.securebench: expected one text, solution or model_patch"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_packed_log_of_inspect_is_read_in_the_order_of_epochs(tmp_path: Path, method: int) -> None:
    path = archive(tmp_path / "log.eval", SAMPLES, method)
    with open_samples(path, KINDS) as samples:
        assert texts(samples) == READ
        assert samples.digest == digest_bytes(path.read_bytes())
    assert sorted(tmp_path.iterdir()) == [path]  # nothing was unpacked


def raw_frame(data: bytes) -> bytes:
    """A zstd frame of one uncompressed block."""
    assert len(data) < 2**17
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zstd_archive(path: Path) -> Path:
    """Method 93, as Inspect writes today: made as stored members whose kind is changed afterwards."""
    with zipfile.ZipFile(path, "w") as file:
        for name, data in [("header.json", b"{}"), ("samples/t_epoch_1.json", json.dumps(SAMPLES[2]).encode())]:
            file.writestr(name, raw_frame(data))
    whole = bytearray(path.read_bytes())
    for name, data in [(b"header.json", b"{}"), (b"samples/t_epoch_1.json", json.dumps(SAMPLES[2]).encode())]:
        local, central = whole.find(name) - 30, whole.rfind(name) - 46
        for start, method, crc in ((local, 8, 14), (central, 10, 16)):
            whole[start + method : start + method + 2] = struct.pack("<H", 93)
            whole[start + crc : start + crc + 4] = struct.pack("<I", zlib.crc32(data))
            whole[start + crc + 8 : start + crc + 12] = struct.pack("<I", len(data))
    path.write_bytes(whole)
    return path


def has_zstd() -> bool:
    try:
        zip_members._zstd(b"")
    except zip_members.NotReadable:
        return False
    return True


def test_log_packed_with_zstd_is_read(tmp_path: Path) -> None:
    if not has_zstd():
        told = "no zstd decoder: Python 3.14, backports.zstd or zstandard, which inspect-ai brings"
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(told)
    path = zstd_archive(tmp_path / "log.eval")
    assert read(path) == {"t": ["first"]}
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"first"', b'"fIrst"'))
    assert "is not what the archive says it is" in problems(path)[0]
    path.write_bytes(data.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"))
    assert "cannot be read" in problems(path)[0]


def test_without_a_decoder_for_zstd_the_fix_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(zip_members, "import_module", missing)
    [told] = problems(zstd_archive(tmp_path / "log.eval"))
    assert "pip install backports.zstd" in told
    assert "inspect log convert" in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (sample("t", 1, "again"), "epoch: epoch 1 of task 't' comes twice"),
        (sample("zz", 1, "x"), "task_id: the pack has no task 'zz'"),
        (sample("w", 1, "x"), "task_id: this task collects a workspace"),
        ({"id": None, "epoch": 1}, "id: expected the id of a task"),
        ({"id": True, "epoch": 1}, "id: expected the id of a task"),
        ({"id": "t", "epoch": "x"}, "epoch: expected a number from 1"),
        ({"id": "t", "epoch": -1}, "epoch: expected a number from 1"),
        ({"id": "t", "epoch": 9, "output": {"choices": [1], "completion": 7}}, "output.completion: expected text"),
    ],
)
def test_wrong_sample_of_a_log_is_told_with_its_place(tmp_path: Path, wrong: Any, told: str) -> None:
    found = problems(write(tmp_path / "log.json", log([*SAMPLES, wrong]), 1))
    assert len(found) == 1
    assert told in found[0]
    assert int(found[0].split(":")[1]) > 30
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", "{}")
        file.writestr("samples/t_epoch_1.json", json.dumps(SAMPLES[2]))
        file.writestr("samples/odd.json", json.dumps(wrong))
    found = problems(path)
    assert len(found) == 1
    assert found[0].startswith("/samples/odd.json: ")
    assert told in found[0]


def test_broken_members_are_told_each(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", "{}")
        file.writestr("samples/1.json", b"{")
        file.writestr("samples/2.json", b"\xff")
        file.writestr("samples/3.json", b"{} {}")
        file.writestr("samples/../../4.json", b'{"id": "a", "id": "b"}')
        file.writestr("/etc/samples/5.json", b"never read")
    found = problems(path)
    assert [one.split(": ")[0] for one in found] == [
        "/samples/../../4.json", "/samples/1.json", "/samples/2.json", "/samples/3.json",
    ]  # fmt: skip
    assert "duplicate key 'id'" in found[0]


def test_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_logs, "MAX_SAMPLE", 2**20)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", "{}")
        file.writestr("samples/big.json", bytes(50 * 2**20))
    tracemalloc.start()
    assert "has 52428800 bytes; at most 1048576" in problems(path)[0]
    lying = bytearray(path.read_bytes())
    for place in (lying.find(b"samples/big") - 30 + 22, lying.rfind(b"samples/big") - 46 + 24):
        lying[place : place + 4] = struct.pack("<I", 1000)
    path.write_bytes(lying)
    assert "samples/big.json: " in problems(path)[0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_archive_that_is_no_log_or_no_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", SAMPLES, header="other.json")
    assert problems(path) == [": a zip archive, but no log of Inspect: it has no header.json"]
    whole = archive(tmp_path / "y.eval", SAMPLES).read_bytes()
    assert "no end record" in problems(write(tmp_path / "cut", whole[:-30]))[0]
    huge = bytearray(whole)
    huge[-22 + 12 : -22 + 16] = struct.pack("<I", 2**31)
    assert "at most 268435456 are read" in problems(write(tmp_path / "huge", bytes(huge)))[0]
    encrypted = bytearray(whole)
    place = encrypted.rfind(b"samples/7") - 46 + 8
    encrypted[place] |= 1
    assert "samples/7_epoch_1.json: is encrypted" in problems(write(tmp_path / "secret", bytes(encrypted)))[0]


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("header.json", "{ }")
    assert problems(path) == [": an archive in which two members have the same name"]


def test_piped_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path / "log.eval", SAMPLES)
    kept = os.dup(0)
    with path.open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        assert read(Path("-")) == READ
    finally:
        os.dup2(kept, 0)
        os.close(kept)


# Directories of EvalPlus


def test_directory_of_evalplus_is_read_in_the_order_of_numbers(tmp_path: Path) -> None:
    root = tmp_path / "samples"
    for number in (10, 0, 2):
        write(root / "HumanEval_0" / f"{number}.py", f"# {number}".encode())
    write(root / "a" / "0.py", b"print('\xff')")
    write(root / "eval_results.json", {})
    write(root / "HumanEval_0" / "notes.txt", b"x")
    with open_samples(root, KINDS) as samples:
        assert texts(samples) == {"HumanEval/0": ["# 0", "# 2", "# 10"], "a": ["print('\udcff')"]}
        digest = samples.digest
    write(root / "HumanEval_0" / "2.py", b"# other")
    with open_samples(root, KINDS) as samples:
        assert samples.digest != digest


def test_what_is_no_sample_of_evalplus_is_told_with_its_file(tmp_path: Path) -> None:
    root = tmp_path / "samples"
    write(root / "HumanEval_1" / "0.py", b"")
    write(root / "a" / "best.py", b"")
    write(root / "p" / "0.py", b"")
    (root / "t").mkdir()
    (root / "t" / "0.py").symlink_to("/etc/passwd")
    found = problems(root)
    assert found == [
        "/HumanEval_1/0.py: task_id: the pack has no task 'HumanEval_1' (did you mean 'HumanEval/0'?)",
        "/a/best.py: expected the number of a sample, as in 0.py",
        "/p/0.py: solution: this task collects a patch: give model_patch or model_reply",
        "/t/0.py: t/0.py is or passes through a symbolic link",
    ]


def test_directory_that_may_be_two_tasks_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "s" / "x_1" / "0.py", b"")
    kinds = {"x/1": CandidateKind.CODE, "x_1": CandidateKind.CODE}
    with pytest.raises(ConfigError, match="may be 'x/1' or 'x_1'"), open_samples(tmp_path / "s", kinds):
        pass


# Jobs of Harbor


def trial(job: Path, name: str, task: Any, files: dict[str, bytes] | None = None, **more: Any) -> None:
    write(job / name / "result.json", {"trial_name": name, "task_name": task, "exception_info": None} | more)
    write(job / name / "config.json", {"task": {"path": str(task)}})
    write(job / name / "verifier" / "reward.txt", b"1\n")
    for path, data in (files or {}).items():
        write(job / name / path, data)


def test_job_of_harbor_gives_what_its_artifacts_hold(tmp_path: Path) -> None:
    job = tmp_path / "job"
    write(job / "result.json", {"id": "x", "n_total_trials": 6, "stats": {}})
    trial(job, "p__1", "p", {"artifacts/logs/artifacts/fix.patch": b"diff", "artifacts/manifest.json": b"[]"})
    trial(job, "p__2", "p", {"artifacts/model.diff": b"other", "artifacts/notes.txt": b"x"})
    trial(job, "t__1", "t", {"artifacts/app/answer.txt": b"B"})
    trial(job, "a__1", "a", {"artifacts/candidate.py": b"x = 1", "agent/candidate.py": b"not collected"})
    trial(job, "q__1", "q", exception_info={"exception_type": "AgentTimeoutError"})
    manifest = [{"source": "/app/answer.txt", "destination": "x", "type": "file", "status": "failed"}]
    trial(job, "t__2", "t", {"artifacts/manifest.json": json.dumps(manifest).encode()})
    expected = {"p": ["diff", "other"], "t": ["B", None], "a": ["x = 1"], "q": [None]}
    assert read(job) == expected
    assert read(job / "p__2") == {"p": ["other"]}
    with open_samples(job, KINDS) as samples:
        digest = samples.digest
    write(job / "p__2" / "artifacts" / "model.diff", b"another")
    with open_samples(job, KINDS) as samples:
        assert samples.digest != digest


def test_trials_of_harbor_that_cannot_be_graded_are_refused_one_by_one(tmp_path: Path) -> None:
    job = tmp_path / "job"
    trial(job, "1", "w", {"artifacts/app/result.txt": b"x"})
    trial(job, "2", "p")
    trial(job, "3", "p", {"artifacts/a.patch": b"x", "artifacts/b.diff": b"y"})
    trial(job, "4", "zz", {"artifacts/a.patch": b"x"})
    trial(job, "5", None)
    write(job / "6" / "result.json", b"{")
    trial(job, "7", "t")
    (job / "7" / "artifacts").mkdir()
    (job / "7" / "artifacts" / "answer.txt").symlink_to("/etc/hostname")  # no artifact: it leads elsewhere
    (job / "8").mkdir()
    (job / "8" / "result.json").symlink_to(job / "2" / "result.json")  # no trial either
    found = problems(job)
    assert [one.split(": ")[0] for one in found] == [f"/{n}/result.json" for n in range(1, 8)]
    assert "a workspace, of which Harbor keeps no copy: it cannot be graded from here" in found[0]
    assert "no candidate among its artifacts: a patch is looked for as *.patch or *.diff" in found[1]
    assert "2 artifacts may be the candidate" in found[2]
    assert "the pack has no task 'zz'" in found[3]
    assert "task_name is nothing (null)" in found[4]
    assert "not JSON" in found[5]
    assert "no candidate among its artifacts: a text" in found[6]


def test_trials_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for number in range(1, 12):
        trial(job, f"t__{number}", "t", {"artifacts/answer.txt": str(number).encode()})
    trial(job, "p__xyz", "p", {"artifacts/a.patch": b"second"})
    trial(job, "p__abc", "p", {"artifacts/a.patch": b"first"})
    assert read(job) == {"t": [str(number) for number in range(1, 12)], "p": ["first", "second"]}


def test_trial_that_ended_with_an_exception_produced_nothing_whatever_it_left(tmp_path: Path) -> None:
    job = tmp_path / "job"
    trial(job, "p__1", "p", {"artifacts/a.patch": b"half"}, exception_info={"exception_type": "AgentTimeoutError"})
    trial(job, "p__2", "p", {"artifacts/a.patch": b"x", "artifacts/b.patch": b"y"}, exception_info={})
    host = {"exception_type": "InfrastructureError", "exception_message": "the host failed"}
    trial(job, "p__3", "p", {"artifacts/a.patch": b"whole"}, exception_info=host)
    assert read(job) == {"p": [None, None, "whole"]}


def test_number_of_a_task_is_told_with_its_whole_name(tmp_path: Path) -> None:
    kinds = {f"Mbpp/{n}": CandidateKind.CODE for n in range(5000)} | {"a/7": CandidateKind.CODE}
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps({"task_id": n, "solution": "x"}) + "\n" for n in (4321, 2, 7)))
    with pytest.raises(ConfigError) as caught, open_samples(path, kinds):
        pass
    told = [str(problem).partition(": ")[2] for problem in caught.value.problems]
    assert told[:2] == [
        "task_id: the pack has no task '4321' (did you mean 'Mbpp/4321'?)",
        "task_id: the pack has no task '2' (did you mean 'Mbpp/2'?)",
    ]
    assert told[2] == "task_id: the pack has no task '7'"  # either of two


def test_artifacts_without_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("securebench.harnesses.sample_layouts.harbor_jobs._MOST", 20)
    trial(tmp_path / "job", "1", "p", {f"artifacts/{n}.txt": b"" for n in range(30)})
    trial(tmp_path / "job", "2", "p", {"artifacts/" + "d/" * 15 + "x.patch": b"diff"})
    assert all("more than 20 artifacts, or nested deeper than 12" in told for told in problems(tmp_path / "job"))


def test_rewards_of_others_decide_nothing(tmp_path: Path) -> None:
    """What a job says of its own success is not in any sample."""
    trial(tmp_path / "job", "1", "p", {"artifacts/a.patch": b"x"}, verifier_result={"rewards": {"reward": 1.0}})
    with open_samples(tmp_path / "job", KINDS) as samples:
        line = samples.line("p", 1)
    assert line is not None
    assert json.loads(line.data) == {"task_id": "p", "model_patch": "x"}


def test_spool_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_BYTES", 10_000)
    path = write(tmp_path / "preds.json", [prediction("p", "x" * 5000)] * 3)
    assert problems(path) == [": holds more than 10000 bytes of samples"]


def test_in_memory_archive_reader_gives_members_by_name() -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("x", b"content")
    with zip_members.Members(data, 100) as members:
        assert list(members.names) == ["x"]
        assert members.read("x") == b"content"
