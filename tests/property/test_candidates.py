"""Random trees and random edits: a delta leads exactly from one to the other, its rendering too, and digests tell trees
apart. What the policy allows of a delta always fits the pristine tree."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from securebench._fs import open_directory
from securebench.candidates.change_decision import Outcome
from securebench.candidates.change_policy import ChangePolicy
from securebench.candidates.entry_names import link_problem, name_problem
from securebench.candidates.hunks import unified_hunks
from securebench.candidates.line_diff import changed_ranges
from securebench.candidates.patch_text import check_patch
from securebench.candidates.path_patterns import PathPatterns
from securebench.candidates.reader import read_tree
from securebench.candidates.rendering import render
from securebench.candidates.store import CandidateStore
from securebench.candidates.tree import Delta, EntryKind, Tree, TreeEntry, apply_delta, delta_between
from securebench.errors import CandidateError

SETTINGS = settings(max_examples=60, suppress_health_check=list(HealthCheck))
FEW = settings(SETTINGS, max_examples=25)

NAMES = st.one_of(
    st.sampled_from(["a", "b", "c.py", "conftest.py", "tests", "setup.cfg", "pyproject.toml", ".gitattributes", "A"]),
    st.sampled_from(
        ["-x", "with space", 'quo"te', "é", "trail ", " lead", "t.pth", "__pycache__", "日本", "$x", "a\u00a0b"]
    ),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=6),
).filter(
    lambda name: (
        (name_problem(name) is None and not name.casefold().startswith((".git", "git~"))) or name == ".gitattributes"
    )
)
LINES = st.sampled_from(
    ["x\n", "y\n", "z\r\n", "\n", "--- a\n", "+++ b\n", "@@ -1 +1 @@\n", "\\ no\n", "ü\n", "\f\n", "\x85\n"]
)
TEXTS = st.builds(
    lambda lines, last: "".join(lines) + last, st.lists(LINES, max_size=25), st.sampled_from(["", "end", "\r"])
)
CONTENTS = st.one_of(TEXTS.map(str.encode), st.binary(max_size=40), st.just(b""), st.just(b"\0" * 300))

Node = bytes | tuple[str, bytes] | str | dict[str, "Node"]  # type: ignore[misc]
LEAVES = st.one_of(
    CONTENTS, CONTENTS.map(lambda data: ("program", data)), NAMES.filter(lambda n: n != ".gitattributes")
)
TREES = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=5),
    lambda inner: st.dictionaries(NAMES, st.one_of(LEAVES, inner), max_size=5),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def store() -> Iterator[CandidateStore]:
    with tempfile.TemporaryDirectory() as name:
        yield CandidateStore(Path(name) / "store")


def build(node: dict[str, Node], store: CandidateStore) -> Tree:
    """A string is a link, a pair a program, a mapping a directory."""
    entries: list[TreeEntry] = []

    def add(prefix: str, inner: dict[str, Node]) -> None:
        for name, item in inner.items():
            path = prefix + name
            if isinstance(item, dict):
                entries.append(TreeEntry.directory(path))
                add(f"{path}/", item)
            elif isinstance(item, str):
                entries.append(TreeEntry.link(path, item))
            else:
                data, executable = (item, False) if isinstance(item, bytes) else (item[1], True)
                entries.append(TreeEntry.file(path, batch.put_bytes(data), len(data), executable))

    with store.batch() as batch:
        add("", node)
    return Tree.of(entries)


def without_empty_directories(tree: Tree) -> Tree:
    """What git can say about a tree."""
    needed = {""}
    for entry in tree.entries:
        if entry.kind is not EntryKind.DIRECTORY:
            above = entry.path.rpartition("/")[0]
            while above not in needed:
                needed.add(above)
                above = above.rpartition("/")[0]
    return Tree.of(e for e in tree.entries if e.kind is not EntryKind.DIRECTORY or e.path in needed)


@SETTINGS
@given(TREES, TREES)
def test_delta_and_pristine_make_the_captured_tree(store: CandidateStore, one: dict, other: dict) -> None:
    pristine, captured = build(one, store), build(other, store)
    delta = delta_between(pristine, captured)
    assert apply_delta(pristine, delta) == captured
    assert Delta.from_json(delta.as_json()) == delta
    assert bool(delta) == (pristine.digest != captured.digest)
    assert (pristine == captured) == (pristine.digest == captured.digest)
    assert set(delta.paths) == {
        path
        for path in {entry.path for entry in (*pristine.entries, *captured.entries)}
        if pristine.get(path) != captured.get(path)
    }


@FEW
@given(TREES)
def test_materialized_tree_is_captured_as_it_was(store: CandidateStore, node: dict) -> None:
    tree = build(node, store)
    assert Tree.from_json(tree.as_json()) == tree
    with tempfile.TemporaryDirectory() as name:
        store.materialize(tree, Path(name))
        for portable in (False, True):
            with open_directory(Path(name)) as root:
                captured = read_tree(root, store, portable=portable)
            assert captured.tree == tree
            assert captured.tree.digest == tree.digest
            assert not captured.left_out


@pytest.fixture(scope="module")
def git_directory() -> Iterator[Path]:
    """An empty repository. Attributes in a tree may ask for conversions; a patch that is applied exactly knows none."""
    with tempfile.TemporaryDirectory() as name:
        git = Path(name) / "git"
        subprocess.run(["git", "init", "-q", "--bare", str(git)], check=True, capture_output=True)
        (git / "info").mkdir(exist_ok=True)
        (git / "info/attributes").write_text("* -text -filter -ident -whitespace\n")
        yield git


@FEW
@given(TREES, TREES)
def test_git_applies_a_rendering_to_get_the_captured_tree(
    store: CandidateStore, git_directory: Path, one: dict, other: dict
) -> None:
    pristine, captured = (without_empty_directories(build(node, store)) for node in (one, other))
    rendered = render(delta_between(pristine, captured), store.read)
    assert not rendered.omitted
    if not rendered.text:
        assert pristine == captured
        return
    check_patch(rendered.text)
    with tempfile.TemporaryDirectory() as name:
        (work := Path(name) / "work").mkdir()
        store.materialize(pristine, work)
        env = {"PATH": "/usr/bin:/bin", "HOME": name, "LC_ALL": "C"}
        env |= {"GIT_DIR": str(git_directory), "GIT_WORK_TREE": str(work)}
        argv = ["git", "apply", "--whitespace=nowarn", "-"]
        done = subprocess.run(argv, cwd=work, env=env, input=rendered.text.encode(), capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr.decode(), rendered.text)
        with open_directory(work) as root:
            assert read_tree(root, store).tree == captured, rendered.text


@SETTINGS
@given(TREES, TREES, st.lists(st.sampled_from(["tests", "a/b", "conftest.py", "c.py", "é"]), max_size=2), st.booleans())
def test_allowed_part_of_a_delta_fits_the_pristine_tree(
    store: CandidateStore, one: dict, other: dict, protected: list[str], allow: bool
) -> None:
    pristine, captured = build(one, store), build(other, store)
    delta = delta_between(pristine, captured)
    policy = ChangePolicy(allow_paths=("**",) if allow else (), protected=frozenset(protected))
    judgement = policy.judge(delta, store.read)
    assert [decision.path for decision in judgement.decisions] == list(delta.paths), "every path is decided once"
    if judgement.of(Outcome.REFUSED):
        with pytest.raises(CandidateError):
            judgement.check()
        return
    result = apply_delta(pristine, judgement.allowed)
    for decision in judgement.decisions:
        expected = captured if decision.outcome is Outcome.ALLOWED else pristine
        assert result.get(decision.path) == expected.get(decision.path)
    for path in protected:
        assert result.get(path) == pristine.get(path)


@SETTINGS
@given(st.lists(st.sampled_from("abcd"), max_size=40), st.lists(st.sampled_from("abcd"), max_size=40))
def test_changed_ranges_turn_one_sequence_into_the_other(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    place = 0
    for item in changed_ranges(old, new):
        made += old[place : item.old_start]
        assert len(made) == item.new_start
        made += new[item.new_start : item.new_end]
        place = item.old_end
    assert made + old[place:] == new


@SETTINGS
@given(TEXTS, TEXTS)
def test_hunks_are_a_patch(old: str, new: str) -> None:
    hunks = unified_hunks(old, new)
    assert bool(hunks) == (old != new)
    if hunks:
        check_patch(f"--- a/x\n+++ b/x\n{hunks}")


@SETTINGS
@given(st.text(max_size=300))
def test_any_text_is_a_patch_or_the_candidates_failure(text: str) -> None:
    for made in (text, f"diff --git a/x b/x\n{text}", f"--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n{text}"):
        try:
            check_patch(made)
        except CandidateError as error:
            if not str(error).isprintable():
                raise AssertionError(f"{error!r} cannot be shown") from error


@SETTINGS
@given(st.text(max_size=30), st.text(max_size=30))
def test_kept_link_never_leads_outside(path: str, target: str) -> None:
    if "\0" in path or link_problem(path, target) is not None:
        return
    depth = path.count("/")
    for step in target.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(step, 1)
        assert depth >= 0


@SETTINGS
@given(st.text("ab*?/[]!-.", min_size=1, max_size=12), st.text("ab/.-", min_size=1, max_size=40), st.booleans())
def test_patterns_are_refused_or_match_in_no_time(pattern: str, path: str, canonical: bool) -> None:
    try:
        patterns = PathPatterns.of([pattern], canonical)
    except ValueError:
        return
    patterns.match(path)
    patterns.match("a" * 250 + "/" + "ab/" * 50 + "c")


def test_git_is_here() -> None:
    assert shutil.which("git"), "the rendering is checked against git itself"
