"""Repositories and workspaces through whole runs: what the agent finds, and what of its leftovers is taken over."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docker.engine import IMAGE, docker, said
from tests.e2e.workbench import Workbench, need_bubblewrap, securebench
from tests.unit.workspaces.git_cases import git, need_git, write_files

from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import TreeEntry
from securebench.images._tree import remove_entry

REPO: dict[str, str | bytes] = {
    "src/app.py": "print('broken')\n",
    "run.sh*": "#!/bin/sh\n",
    ".gitignore": "*.log\nbuild/\n",
}
IDENTITY = "export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
FIX = "echo \"print('fixed')\" > src/app.py; "


def need_git_inside() -> None:
    """The agent's git is the host's, read-only, beneath /usr."""
    need_git()
    found = shutil.which("git") or ""
    if not Path(found).resolve().is_relative_to("/usr"):
        pytest.skip(f"git is at {found}, which agents do not see; they see /usr")


def patch_row(repo: str = "repo", **more: Any) -> dict[str, Any]:
    return {
        "id": "p1",
        "family": "repo_patch",
        "input": {"repo": repo, "base_commit": "x", "instructions": "Fix it."},
        "eval": {"tests": {"source": "command", "command": ["true"]}},
        "assets": [{"path": repo}],
    } | more


def terminal_row(**more: Any) -> dict[str, Any]:
    return {
        "id": "w1",
        "family": "terminal_task",
        "input": {"instructions": "Do it."},
        "eval": {"checker": {"source": "script", "path": "check.sh"}},
    } | more


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Assets and hidden files where `bench` puts its pack."""
    write_files(tmp_path / "assets" / "repo", REPO)
    write_files(tmp_path / "assets", {"data.txt": "data\n"})
    write_files(tmp_path / "hidden", {"check.sh": "exit 0\n"})
    return tmp_path


def the_records(work: Workbench, *args: str) -> dict[str, dict[str, Any]]:
    """The records of a run by task, as their producer left them, whatever a verifier then said."""
    done = work.run(*args)
    assert done.code in (0, 3), done.err
    assert (work.output / "candidates.jsonl").exists(), done.err
    return {record["task_id"]: record for record in work.records()}


def the_record(work: Workbench) -> dict[str, Any]:
    """The record of a run's only attempt."""
    [record] = the_records(work).values()
    return record


def taken(record: dict[str, Any]) -> dict[str, Any]:
    """What the record says about the capture, and about how the workspace began."""
    candidate = record["producer_metadata"]["candidate"]
    return {**candidate, **candidate["capture"]}


def captured(work: Workbench, record: dict[str, Any]) -> dict[str, TreeEntry]:
    tree = CandidateStore(work.output / "candidates").load(taken(record)["tree"])
    return {entry.path: entry for entry in tree.entries}


def left_out(record: dict[str, Any]) -> dict[str, str]:
    return {item["path"]: item["reason"] for item in taken(record)["left_out"]}


def test_an_agent_works_in_a_normal_repository_and_its_change_is_the_candidate(bench: Any, pack: Path) -> None:
    need_git_inside()
    look = "git status --porcelain; git diff; git log --all --format='%s by %an'; git fsck --strict --unreachable; "
    record = the_record(bench([patch_row()], f"set -e; export HOME=/tmp; {look} {FIX} git diff --stat >&2"))
    assert record["failure_reason"] not in ("producer_failed", "candidate_refused"), record["producer_stderr"]
    assert record["producer_stdout"] == "Base commit by SecureBench\n"
    assert "src/app.py | 2 +-" in record["producer_stderr"]
    patch = record["candidate_patch"]
    assert "-print('broken')\n+print('fixed')\n" in patch
    assert patch.count("diff --git") == 1
    assert taken(record)["changed_paths"] == 1
    assert record["digests"]["candidate"].startswith("sha256:")


HABITS = {
    "commits": "git add -A && git commit -qm mine",
    "detaches": "git checkout -qb f && git commit -qam m && git checkout -q --detach",
    "stashes": "git stash -q && git stash pop -q",
    "removes": "rm -rf .git",
}


def test_what_an_agent_does_with_git_loses_nothing(bench: Any, pack: Path) -> None:
    need_git_inside()
    rows = [patch_row() | {"id": habit} for habit in HABITS]
    script = IDENTITY + "set -e; " + FIX
    script += "".join(f"if grep -q '\"{habit}\"' task.json; then {words}; fi; " for habit, words in HABITS.items())
    records = the_records(bench(rows, script))
    assert records.keys() == HABITS.keys()
    for record in records.values():
        assert record["failure_reason"] != "producer_failed", record["producer_stderr"]
        assert "+print('fixed')\n" in record["candidate_patch"]


@pytest.fixture
def bundle(pack: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """A bundle among the assets with the fix in its history; the base commit, and the ids of the fix's objects."""
    need_git()
    source = write_files(tmp_path_factory.mktemp("upstream"), {"app.py": "broken\n"})
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "base")
    base = git(source, "rev-parse", "HEAD").strip().decode()
    write_files(source, {"app.py": "the secret fix\n", "test_hidden.py": "hidden\n"})
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "the secret fix")
    git(source, "tag", "v2")
    git(source, "bundle", "create", "-q", str(pack / "assets" / "repo.bundle"), "--all")
    words = ("HEAD", "HEAD:app.py", "HEAD:test_hidden.py", "HEAD^{tree}")
    return base, {git(source, "rev-parse", word).strip().decode() for word in words}


def test_no_later_commit_of_a_bundle_can_be_found(bench: Any, pack: Path, bundle: tuple[str, set[str]]) -> None:
    need_git_inside()
    base, gold = bundle
    row = patch_row("repo.bundle")
    row["input"]["base_commit"] = base
    search = (
        "export HOME=/tmp; git cat-file --batch-check --batch-all-objects; git for-each-ref; git reflog --all;"
        "git remote -v; git log --all -S'secret fix' --oneline; ls -a . .git .git/hooks; grep -ra 'secret fix' .; cat app.py"
    )
    record = the_record(bench([row], search))
    seen = record["producer_stdout"]
    assert "broken\n" in seen, record["producer_stderr"]
    assert " commit " in seen
    assert not any(identity in seen for identity in gold)
    assert "secret fix" not in seen
    assert "v2" not in seen


def test_positive_control_the_bundle_itself_gives_the_fix_away(
    bench: Any, pack: Path, bundle: tuple[str, set[str]]
) -> None:
    need_git_inside()
    row = terminal_row(assets=[{"path": "repo.bundle"}])
    search = "export HOME=/tmp; git clone -q repo.bundle /tmp/r && cd /tmp/r && git rev-parse v2 && git log --all --format=%s"
    record = the_record(bench([row], search))
    assert any(identity in record["producer_stdout"] for identity in bundle[1]), record["producer_stderr"]
    assert "the secret fix" in record["producer_stdout"]


TRAP = (
    "printf '#!/bin/sh\\ntouch %s /workspace/sprung\\n' \"$1\" > trap.sh; chmod +x trap.sh;"
    'git config core.fsmonitor "$PWD/trap.sh"; git config diff.external "$PWD/trap.sh"; mkdir -p .git/hooks;'
    "for h in post-checkout pre-commit post-index-change; do cp trap.sh .git/hooks/$h; done;"
    'git config filter.zz.clean "$PWD/trap.sh"; echo "* filter=zz" > .gitattributes;'
)


def test_nothing_in_an_agents_repository_runs_on_the_host(bench: Any, pack: Path, tmp_path: Path) -> None:
    """The row `sprung` is the positive control: any git command there runs what the agent planted."""
    need_git_inside()
    marker = tmp_path / "marker"
    script = f"export HOME=/tmp; set -- {marker}; {TRAP} {FIX}"
    script += "if grep -q '\"sprung\"' task.json; then git status; git diff; fi >/dev/null 2>&1; true"
    records = the_records(bench([patch_row() | {"id": "set"}, patch_row() | {"id": "sprung"}], script))
    assert "+print('fixed')\n" in records["set"]["candidate_patch"], records["set"]["producer_stderr"]
    assert "b/sprung" not in records["set"]["candidate_patch"]
    assert "b/sprung" in records["sprung"]["candidate_patch"]
    assert not marker.exists()


def test_ignored_output_is_left_out_by_the_packs_rules_alone(bench: Any, pack: Path) -> None:
    script = (
        f"{FIX} mkdir -p build src/__pycache__ .pytest_cache; echo x | tee build/o run.log src/__pycache__/a.pyc .pytest_cache/x;"
        "echo '*' > .gitignore; echo keep > hidden-by-the-agent.py"
    )
    record = the_record(bench([patch_row()], script))
    changed = {line.split(" b/")[1] for line in record["candidate_patch"].splitlines() if line.startswith("diff --git")}
    assert changed == {"src/app.py", ".gitignore", "hidden-by-the-agent.py"}
    assert left_out(record).keys() >= {"build", "run.log", "src/__pycache__", ".pytest_cache"}


def test_a_declared_file_is_the_patch_as_text(bench: Any, pack: Path) -> None:
    record = the_record(bench([patch_row()], f"{FIX} echo 'my own words' > fix.patch", artifact_path="fix.patch"))
    assert record["candidate_patch"] == "my own words\n"


HOSTILE = r"""
import os, socket
def put(path, data=b"x"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "wb").write(data)
put("honest/result.txt", b"42\n")
os.symlink("CANARY", "absolute"); os.symlink("../../../../../../../../CANARY", "relative")
os.makedirs("linked"); os.symlink("/etc", "linked/etc"); os.symlink("absolute", "chained")
os.mkfifo("pipe")
s = socket.socket(socket.AF_UNIX); s.bind("stale.sock")
put("venv/lib/python3"); os.makedirs("venv/bin"); os.symlink("../lib/python3", "venv/bin/python")
os.symlink("lib", "venv/lib64")
put("cache/one"); os.link("cache/one", "cache/two")
open("sparse", "wb").truncate(100 << 20)
put("repo/.git/config", b"[core]\n"); put("repo/file")
for name in (b"-rf", b"con", b"nul.txt", b"sda1", b"a b", "ünï".encode(), b"..."): put(b"names/" .decode() + os.fsdecode(name))
for name in (b"new\nline", b"\xff\xfe", b"esc\x1b[2J", b"back\\slash"): put("names/" + os.fsdecode(name))
deep = "deep/" + "/".join(["d"] * 40); put(deep + "/leaf")
os.chmod("honest/result.txt", 0o6755)
os.chmod("cache", 0)
for number in range(10_000): put(f"many/{number % 100}/{number}", b"%d" % number)
print("everything is there"); raise SystemExit(7)
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workbench, dict[str, Any], Path, str]:
    """One run of an agent that leaves everything behind that could hurt a reader, with a canary on the host.

    It ends with an error, so nothing is verified; what it left is taken over all the same."""
    need_bubblewrap()
    directory = tmp_path_factory.mktemp("hostile")
    write_files(directory / "hidden", {"check.sh": "exit 0\n"})
    write_files(directory / "assets", {"data.txt": "data\n"})
    canary = directory / "canary.txt"
    canary.write_text("the-canary-of-the-host")
    script = HOSTILE.replace("/CANARY", str(canary)).replace("CANARY", str(canary))
    rows = [terminal_row(assets=[{"path": "data.txt"}])]
    (directory / "manifest.yaml").write_text("id: e2e\nversion: 1\n")
    (directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tester = {
        "schema_version": "0.3",
        "run": {"id": "e2e-run", "output_dir": "out"},
        "benchmark": {"manifest": "manifest.yaml", "tasks": "tasks.jsonl"},
        "harness": {"type": "command", "config": {"command": ["/usr/bin/python3", "-c", script]}},
    }
    (directory / "tester.yaml").write_text(json.dumps(tester))
    work = Workbench(directory)
    done = work.run("--progress", "json")
    assert done.code in (0, 3), done.err
    [record] = work.records()
    assert record["producer_stdout"] == "everything is there\n", record["producer_stderr"]
    return work, record, canary, done.err


def test_honest_leftovers_are_captured(hostile: Any) -> None:
    work, record, _, _ = hostile
    assert record["candidate_workspace"] == taken(record)["tree"]
    entries = captured(work, record)
    assert entries["honest/result.txt"].mode == 0o755, "no setuid bit comes along"
    assert entries["venv/bin/python"].target == "../lib/python3"
    assert entries["venv/lib64"].target == "lib"
    assert entries["sparse"].size == 100 << 20
    assert entries["deep/" + "/".join(["d"] * 40) + "/leaf"].size == 1
    assert sum(path.startswith("many/") for path in entries) == 10_100
    assert {"names/-rf", "names/con", "names/a b", "names/ünï", "names/..."} <= entries.keys()
    assert entries["data.txt"].size == 5
    assert "task.json" not in entries
    assert not any(path.startswith("securebench") for path in entries)


def test_hostile_leftovers_are_left_out_and_listed(hostile: Any) -> None:
    work, record, canary, _ = hostile
    listed = left_out(record)
    for name in ("absolute", "relative", "linked/etc", "pipe", "stale.sock"):
        assert name in listed, name
        assert name not in captured(work, record)
    assert sum(name.startswith("names/") for name in listed) == 4
    everything = json.dumps(record)
    assert canary.read_text() not in everything
    assert "\x1b" not in everything
    for path in work.output.rglob("*"):
        if path.is_file():
            assert canary.read_bytes() not in path.read_bytes()


def test_positive_control_a_reader_that_follows_links_reads_the_canary(hostile: Any, tmp_path: Path) -> None:
    _, _, canary, _ = hostile
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "absolute").symlink_to(canary)
    shutil.copytree(tmp_path / "tree", tmp_path / "copy")
    assert (tmp_path / "copy" / "absolute").read_text() == canary.read_text()


def test_a_long_capture_reports_its_progress(hostile: Any) -> None:
    events = [json.loads(line) for line in hostile[3].splitlines() if line.startswith("{")]
    reading = [event for event in events if event["event"] == "workspace_progress" and event["doing"] == "capture"]
    assert reading
    assert reading[-1]["files"] > 1000


TOO_MUCH = {
    "deep": "import os\nfor _ in range(200):\n    os.mkdir('d'); os.chdir('d')",
    "long": "import os\nfor _ in range(30):\n    os.mkdir('n' * 200); os.chdir('n' * 200)",
}


def test_more_than_the_budget_is_the_candidates_failure(bench: Any, pack: Path) -> None:
    rows = [terminal_row(environment={"resources": {"disk": "8g"}}) | {"id": case} for case in TOO_MUCH]
    script = f"import json\nexec({TOO_MUCH!r}[json.load(open('task.json'))['task_id']])"
    work = bench(rows, ["/usr/bin/python3", "-c", script])
    done = work.run()
    assert done.code == 0, done.err
    for record in work.records():
        assert record["verification_status"] == "failed", record["failure_message"]
        assert record["failure_reason"] == "candidate_too_large", record["producer_stderr"]
        assert record["score"] == 0.0


def test_a_daemon_cannot_change_what_was_taken(bench: Any, pack: Path) -> None:
    script = "(setsid sh -c 'while :; do echo $RANDOM > f; mv f g; mv g f; done' &); sleep 0.3"
    work = bench([terminal_row()], script)
    record = the_record(work)
    tree = CandidateStore(work.output / "candidates").load(record["candidate_workspace"])
    assert tree.digest == record["candidate_workspace"] == taken(record)["tree"]


def test_a_null_agent_leaves_everything_as_it_was(bench: Any, pack: Path) -> None:
    rows = [patch_row(), terminal_row(assets=[{"path": "data.txt"}])]
    work = bench(rows, "true")
    tester = json.loads(work.config.read_text())
    tester["harness"] = {"type": "null"}
    work.config.write_text(json.dumps(tester))
    assert work.run().code in (0, 3)
    records = {record["task_id"]: record for record in work.records()}
    assert records["p1"]["candidate_patch"] == ""
    assert taken(records["p1"])["changed_paths"] == 0
    assert records["w1"]["candidate_workspace"] == taken(records["w1"])["pristine"]


def test_a_repository_that_is_not_there_is_the_packs_fault(bench: Any, pack: Path) -> None:
    done = bench([patch_row(assets=[])], "true").run()
    assert done.code == 3
    assert done.json["errors"] == 1


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An image store that the users of sandboxes can enter; beneath pytest's own directories they could not."""
    made = Path(tempfile.mkdtemp(prefix="sb-images-"))
    made.chmod(0o755)
    monkeypatch.setenv("SECUREBENCH_HOME", str(made))
    yield made
    parent = os.open(made.parent, os.O_RDONLY | os.O_DIRECTORY)
    remove_entry(parent, os.fsencode(made.name))
    os.close(parent)


def image_files(root: Path) -> Path:
    """What a task's image has in /app."""
    write_files(root, {"app/main.sh*": "#!/bin/sh\necho from the image\n", "app/data.txt": "the image's\n"})
    write_files(root, {"app/venv/sh": "-> /bin/sh", "app/link": "-> main.sh", "app/.git/objects/x": "future commits\n"})
    return root


def add_programs(root: Path, *names: str) -> None:
    """Programs of this host with their libraries."""
    (root / "bin").mkdir()
    for name in names:
        source = Path(shutil.which(name) or "").resolve()
        shutil.copy(source, root / "bin" / name)
        listing = subprocess.run(["ldd", source], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+\.so\S*)", listing):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(Path(library).resolve(), target)


LOOK = "venv/sh -c 'echo by its link'; cat main.sh data.txt; ls -a; readlink link; echo made > new.txt"
FROM_IMAGE = {"image": "tasks/app:1", "workdir": "/app", "materialize_workdir_from_image": True}


def test_an_imported_images_directory_is_where_the_agent_begins(
    bench: Any, pack: Path, home: Path, tmp_path: Path
) -> None:
    root = image_files(tmp_path / "root")
    add_programs(root, "sh", "cat", "ls", "readlink")
    imported = securebench("image", "import", f"dir:{root}", "--name", "tasks/app:1", "--json")
    assert imported.code == 0, imported.err
    work = bench([terminal_row(assets=[{"path": "data.txt"}], environment=FROM_IMAGE)], LOOK)
    check_began_in_image(work, the_record(work))


def check_began_in_image(work: Workbench, record: dict[str, Any]) -> None:
    assert "from the image" in record["producer_stdout"], (record["failure_message"], record["producer_stderr"])
    assert "by its link" in record["producer_stdout"], "a link that leads out of the workspace works inside"
    assert "data\n" in record["producer_stdout"], "assets win"
    assert "the image's" not in record["producer_stdout"]
    assert record["producer_stdout"].endswith("main.sh\n")
    entries = captured(work, record)
    assert {"main.sh", "data.txt", "new.txt"} <= entries.keys()
    assert entries["main.sh"].mode == 0o755
    assert entries["link"].target == "main.sh"
    assert "venv/sh" not in entries, "such a link is no part of what is taken over"
    assert "venv/sh" in {item["path"] for item in taken(record)["left_out_at_start"]}


@pytest.fixture
def engine_image(tmp_path: Path) -> Iterator[str]:
    """The same image, only in a container engine."""
    reason = "" if shutil.which("docker") and docker("image", "inspect", IMAGE).returncode == 0 else f"no image {IMAGE}"
    if reason:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(f"{reason}: run scripts/ci-docker")
    name = f"securebench-test-workspaces:{os.getpid()}"
    container = said("create", IMAGE, "true")
    try:
        subprocess.run(
            ["docker", "cp", f"{image_files(tmp_path / 'root')}/app", f"{container}:/app"], check=True, timeout=600
        )
        said("commit", container, name)
        yield name
    finally:
        docker("rm", "--force", container)
        docker("rmi", "--force", name)


def test_an_engines_images_directory_is_where_the_agent_begins(bench: Any, pack: Path, engine_image: str) -> None:
    environment = FROM_IMAGE | {"image": engine_image}
    rows = [terminal_row(assets=[{"path": "data.txt"}], environment=environment)]
    rows.append(patch_row("org/name", assets=[], environment={"image": engine_image, "workdir": "/app"}))
    work = bench(rows, LOOK)
    tester = json.loads(work.config.read_text()) | {"sandbox": {"backend": "docker"}}
    work.config.write_text(json.dumps(tester))
    records = the_records(work)
    check_began_in_image(work, records["w1"])
    assert "+++ b/new.txt" in records["p1"]["candidate_patch"]
    assert "future commits" not in json.dumps(records["p1"])
    assert taken(records["p1"])["changed_paths"] == 1
