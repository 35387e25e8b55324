"""Class E: git and patches, beyond the catalogue's attacks: what git does not show, how refusals are worded, and names
that collide. Positive controls run the plain way on the same tree or patch and are fooled."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest
from tests.unit.candidates.trees import Content, Link, Program, capture, changes, stored, write

from securebench.candidates.artifact import CandidateArtifact
from securebench.candidates.change_decision import Outcome
from securebench.candidates.change_policy import ChangePolicy
from securebench.candidates.patch_application import apply_patch
from securebench.candidates.rendering import render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta, Tree, TreeEntry, apply_delta, delta_between
from securebench.errors import CandidateError, FailureReason
from securebench.sandboxes.base import Sandbox
from securebench.sandboxes.bubblewrap import BubblewrapSandbox

PRISTINE: dict[str, Content] = {
    "src/app.py": "".join(f"line {number}\n" for number in range(1, 31)),
    "src/other.py": "print('other')\n",
    "src/tool.sh": Program(b"#!/bin/sh\n"),
    "tests/test_app.py": "assert True\n",
    "tests/data.json": "{}\n",
    "README": "read me\n",
}
GIT_ENV = {
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "LC_ALL": "C",
}


def git(tree: Path, *argv: str, check: bool = True, stdin: str = "") -> str:
    done = subprocess.run(
        ["git", *argv], cwd=tree, env=GIT_ENV, input=stdin, capture_output=True, text=True, check=check, timeout=300
    )
    return done.stdout


@pytest.fixture
def store(tmp_path: Path) -> CandidateStore:
    return CandidateStore(tmp_path / "store")


@pytest.fixture
def pristine(store: CandidateStore, tmp_path: Path) -> Tree:
    return stored(PRISTINE, store, tmp_path / "pristine")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The agent's repository with one commit, as it gets it."""
    tree = write(tmp_path / "work", PRISTINE)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "base")
    return tree


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    box = BubblewrapSandbox()
    capabilities = anyio.run(box.probe)
    if not capabilities.usable:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(f"bubblewrap: {capabilities.remedy}")
    return box


def extract(work: Path, pristine: Tree, store: CandidateStore) -> CandidateArtifact:
    return changes(work, pristine, store)


def delta_of(work: Path, pristine: Tree, store: CandidateStore) -> Delta:
    delta = extract(work, pristine, store).delta
    assert delta is not None
    return delta


# -- E04: the reviewed diff differs from the tree ------------------------------------------------------------------


def hide(work: Path, how: str) -> None:
    write(work, {"src/app.py": "evil\n"})
    if how == "assume-unchanged":
        git(work, "update-index", "--assume-unchanged", "src/app.py")
    elif how == "skip-worktree":
        git(work, "update-index", "--skip-worktree", "src/app.py")
    elif how == "commit":
        git(work, "commit", "-q", "-a", "-m", "hidden")
    elif how == "stage":
        git(work, "add", "-A")
    elif how == "detach":
        git(work, "checkout", "-q", "--detach")
        git(work, "commit", "-q", "-a", "-m", "hidden")
    elif how == "removed repository":
        shutil.rmtree(work / ".git")


@pytest.mark.parametrize(
    "how", ["assume-unchanged", "skip-worktree", "commit", "stage", "detach", "removed repository"]
)
def test_what_git_does_not_show_is_in_the_delta(work: Path, pristine: Tree, store: CandidateStore, how: str) -> None:
    hide(work, how)
    [change] = delta_of(work, pristine, store).changed
    assert change.path == "src/app.py"
    assert store.read(change.after.digest, 100) == b"evil\n"
    if how != "removed repository":
        assert "evil" not in git(work, "diff"), "positive control: git diff does not show it"


def test_ignored_and_untracked_files_are_in_the_delta(work: Path, pristine: Tree, store: CandidateStore) -> None:
    write(
        work,
        {
            ".git/info/exclude": "*.so\nhelper.py\n",
            "helper.py": "1\n",
            "src/evil.so": b"\0",
            ".gitignore": "x\n",
            "x": "",
        },
    )
    artifact = extract(work, pristine, store)
    assert artifact.delta is not None
    assert artifact.delta.paths == (".gitignore", "helper.py", "src/evil.so", "x")
    assert "helper.py" not in git(work, "status", "--porcelain"), "positive control: git status does not show it"
    assert artifact.digest == artifact.delta.digest
    capture_record = artifact.metadata["capture"]
    assert capture_record["left_out"] == [], "its own git directory is left out of every capture"


def test_stash_is_no_change(work: Path, pristine: Tree, store: CandidateStore) -> None:
    write(work, {"src/app.py": "evil\n"})
    git(work, "stash", "-q")
    assert not delta_of(work, pristine, store)


def new_file(path: str, text: str = "evil", header: str | None = None, mode: str = "100644") -> str:
    name = f"b/{path}"
    first = header or f"diff --git a/{path} b/{path}"
    return f"{first}\nnew file mode {mode}\n--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+{text}\n"


LINK_OUT = (
    "diff --git a/door b/door\nnew file mode 120000\n--- /dev/null\n+++ b/door\n@@ -0,0 +1 @@\n+src\n"
    "\\ No newline at end of file\n"
)
# -- E09: sections without content lines ---------------------------------------------------------------------------

RENAME = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"
SILENT = {
    "rename onto a test": (RENAME.format("src/other.py", "tests/test_new.py"), "tests/test_new.py", Outcome.STRIPPED),
    "rename away": (RENAME.format("tests/test_app.py", "src/gone.py"), "tests/test_app.py", Outcome.STRIPPED),
    "copy to conftest": (
        "diff --git a/src/other.py b/conftest.py\nsimilarity index 100%\ncopy from src/other.py\ncopy to conftest.py\n",
        "conftest.py",
        Outcome.STRIPPED,
    ),
    "mode": (
        "diff --git a/tests/test_app.py b/tests/test_app.py\nold mode 100644\nnew mode 100755\n",
        "tests/test_app.py",
        Outcome.STRIPPED,
    ),
    "delete": (
        "diff --git a/tests/data.json b/tests/data.json\ndeleted file mode 100644\n--- a/tests/data.json\n"
        "+++ /dev/null\n@@ -1 +0,0 @@\n-{}\n",
        "tests/data.json",
        Outcome.STRIPPED,
    ),
    "empty": ("diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n", "conftest.py", Outcome.STRIPPED),
    "binary": ("", "sitecustomize.py", Outcome.STRIPPED),  # rendered in the test
    "link": (LINK_OUT.replace("+src\n", "+tests/test_app.py\n"), "door", Outcome.REFUSED),
}


@pytest.mark.parametrize("kind", SILENT)
def test_section_without_lines_is_judged_by_what_it_did(
    pristine: Tree, store: CandidateStore, sandbox: Sandbox, kind: str
) -> None:
    patch, path, outcome = SILENT[kind]
    if kind == "binary":
        patch = binary_patch(store)
    captured = anyio.run(apply_patch, patch, pristine, store, sandbox)
    delta = delta_between(pristine, captured.tree)
    judgement = ChangePolicy(protected=frozenset({"tests/test_app.py"})).judge(delta, store.read)
    assert {decision.path: decision.outcome for decision in judgement.decisions}[path] is outcome
    assert path not in judgement.allowed.paths
    if kind not in {"link", "delete"}:
        assert f"+++ b/{path}" not in patch, "positive control: who scans +++ lines sees nothing"


def binary_patch(store: CandidateStore) -> str:
    """A rendering of bytes that are no text, at a name that is loaded at every start."""
    entry = TreeEntry.file("sitecustomize.py", store.put(b"\0\xff"), 2)
    text = render(Delta(added=(entry,)), store.read).text
    assert "GIT binary patch" in text
    return text


def test_gitlink_brings_nothing(pristine: Tree, store: CandidateStore, sandbox: Sandbox) -> None:
    patch = new_file("module", "Subproject commit " + "1" * 40, mode="160000")
    captured = anyio.run(apply_patch, patch, pristine, store, sandbox)
    [entry] = delta_between(pristine, captured.tree).added
    assert entry == TreeEntry.directory("module"), "an empty directory"


# -- E10: collisions with hidden tests -----------------------------------------------------------------------------

HIDDEN = "tests/hidden/test_gold.py"


def judge(
    contents: dict[str, Content], pristine: Tree, store: CandidateStore, tmp_path: Path, protected: str = HIDDEN
) -> dict[str, tuple[str, str]]:
    work = write(tmp_path / "changed", {})
    store.materialize(pristine, work)
    for path, content in contents.items():
        place = work / path
        while place != work:
            if place.is_file() or place.is_symlink():
                place.unlink()
            place = place.parent
        if (work / path).is_dir() and content is not None:
            shutil.rmtree(work / path)
    write(work, contents)
    delta = delta_between(pristine, capture(work, store).tree)
    judgement = ChangePolicy(protected=frozenset({protected})).judge(delta, store.read)
    if not judgement.of(Outcome.REFUSED):
        judgement.check()
        assert not {path for path in judgement.allowed.paths if path.startswith(protected)}
        apply_delta(pristine, judgement.allowed)
    else:
        with pytest.raises(CandidateError) as caught:
            judgement.check()
        assert caught.value.reason is FailureReason.CANDIDATE_REFUSED
    return {decision.path: (str(decision.outcome), decision.reason) for decision in judgement.decisions}


def test_planted_hidden_test_is_stripped(pristine: Tree, store: CandidateStore, tmp_path: Path) -> None:
    decided = judge({HIDDEN: "assert True\n", "src/app.py": "fixed\n"}, pristine, store, tmp_path)
    assert decided[HIDDEN] == ("stripped", "is protected; its pristine bytes are used")
    assert decided["src/app.py"][0] == "allowed"


COLLISIONS: dict[str, dict[str, Content]] = {
    "case": {"tests/hidden/TEST_gold.py": "x"},
    "case of a directory": {"Tests/Hidden/test_gold.py": "x"},
    "a file where its directory must be": {"tests/hidden": "x"},
    "a link where its directory must be": {"tests/hidden": Link("../src")},
    "a link in its place": {HIDDEN: Link("../../src/app.py")},
    "a link that leads to it": {"src/peek.py": Link("../tests/hidden/test_gold.py")},
    "a chain that leads to it": {"src/a": Link("../tests"), "src/peek.py": Link("a/hidden/test_gold.py")},
}


@pytest.mark.parametrize("collision", COLLISIONS)
def test_collision_with_a_hidden_test_is_refused(
    pristine: Tree, store: CandidateStore, tmp_path: Path, collision: str
) -> None:
    decided = judge(COLLISIONS[collision], pristine, store, tmp_path)
    assert "refused" in {outcome for outcome, _ in decided.values()}
    assert not {HIDDEN} & set(COLLISIONS[collision]) or collision == "a link in its place", (
        "positive control: comparing names as they are finds none of them"
    )


def test_other_composition_of_characters_collides(pristine: Tree, store: CandidateStore, tmp_path: Path) -> None:
    composed, decomposed = "tests/t\u00e9.py", "tests/te\u0301.py"
    decided = judge({decomposed: "x"}, pristine, store, tmp_path, protected=composed)
    assert decided[decomposed] == ("refused", f"collides with the protected path {composed}")


@pytest.mark.parametrize("replacement", [None, Link("../src/app.py")], ids=["directory", "link"])
def test_protected_file_replaced_by_something_else_is_refused(
    pristine: Tree, store: CandidateStore, tmp_path: Path, replacement: Content
) -> None:
    decided = judge({"tests/data.json": replacement}, pristine, store, tmp_path, protected="tests/data.json")
    assert decided["tests/data.json"][0] == "refused"


@pytest.mark.parametrize("name", [".git", ".GIT", ".git ", ".git.", "git~1", "GIT~1"])
def test_nested_repository_is_refused(pristine: Tree, store: CandidateStore, tmp_path: Path, name: str) -> None:
    decided = judge({f"src/{name}/config": "[core]\n"}, pristine, store, tmp_path)
    assert decided[f"src/{name}/config"] == ("refused", "is a name that git takes for a repository")


# -- E11: lenient application --------------------------------------------------------------------------------------

EXACT = "--- a/src/app.py\n+++ b/src/app.py\n@@ -9,5 +9,5 @@\n line 9\n line 10\n-line 11\n+fixed\n line 12\n line 13\n"
LENIENT = {
    "drifted": (EXACT.replace("-9,5 +9,5", "-12,5 +12,5"), "does not apply exactly"),
    "contradicting numbers": (EXACT.replace("-9,5 +9,5", "-12,5 +9,5"), "line numbers that disagree"),
    "wrong context": (EXACT.replace(" line 13", " line 14"), r"hunk 1 of src/app\.py \(line 9\)"),
    "in prose": (f"Here is my fix:\n\n{EXACT}", "line 1 of the patch belongs to no section"),
    "in a mail": (f"From: me\nSubject: fix\n\n{EXACT}-- \n2.39\n", "line 1 of the patch"),
    "with a second one behind prose": (f"{EXACT}and also\n{EXACT}", "line 10 of the patch belongs to no section"),
    "ed script": ("1d\n.\nw\n!touch /tmp/x\n", "line 1 of the patch"),
    "cut short": (EXACT.rpartition(" line 13")[0], "before its announced length"),
    "too long": (EXACT.replace("-9,5 +9,5", "-9,4 +9,4"), "belongs to no section"),
    "twice": (EXACT + EXACT, "does not"),
    "missing file": (EXACT.replace("app.py", "nothing.py"), "src/nothing.py: No such file"),
    "new file that exists": (new_file("src/app.py"), "already exists"),
}


@pytest.mark.parametrize("case", LENIENT)
def test_what_does_not_fit_exactly_is_refused_and_named(
    pristine: Tree, store: CandidateStore, sandbox: Sandbox, case: str
) -> None:
    patch, message = LENIENT[case]
    with pytest.raises(CandidateError, match=message) as caught:
        anyio.run(apply_patch, patch, pristine, store, sandbox)
    assert caught.value.reason is FailureReason.CANDIDATE_REFUSED


def test_what_fits_exactly_is_applied(pristine: Tree, store: CandidateStore, sandbox: Sandbox) -> None:
    captured = anyio.run(apply_patch, EXACT.removesuffix("\n"), pristine, store, sandbox)
    [change] = delta_between(pristine, captured.tree).changed
    assert b"line 10\nfixed\nline 12\n" in store.read(change.after.digest, 10_000)
    assert not captured.left_out
