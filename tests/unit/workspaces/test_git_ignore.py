"""`.gitignore` files mean to us what they mean to git."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.workspaces.git_cases import git, need_git

from securebench.workspaces._git.ignore import IgnoreRules


def ignored(patterns: str, path: str, is_dir: bool = False) -> bool:
    return IgnoreRules({(): patterns.encode()}).ignored(path.encode(), is_dir)


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        ("*.pyc", "a/b/c.pyc", True),
        ("*.pyc\n!keep.pyc", "keep.pyc", False),
        ("build/", "build/x", True),
        ("build/", "build", False),
        ("/build", "sub/build", False),
        ("doc/*.txt", "doc/sub/a.txt", False),
        ("doc/**/*.txt", "doc/sub/deep/a.txt", True),
        ("doc/**", "doc/a", True),
        ("**/logs", "a/b/logs", True),
        ("a/**/b", "a/b", True),
        ("[a-c]?.log", "bx.log", True),
        ("[!a]x", "ax", False),
        ("\\#x", "#x", True),
        ("# x", "# x", False),
        ("x\\ ", "x ", True),
        ("x   ", "x", True),
        ("dir\n!dir/keep", "dir/keep", True),
        ("*\n!*/\n!*.py", "a/b.py", False),
        ("[", "[", False),
        ("\ufeffx\r\n", "x", True),
    ],
)
def test_known_cases(patterns: str, path: str, expected: bool) -> None:
    assert ignored(patterns, path) is expected


def test_deeper_files_decide_over_higher_ones() -> None:
    rules = IgnoreRules({(): b"*.log\n", (b"sub",): b"!*.log\n/only\n"})
    assert rules.ignored(b"a.log", False)
    assert not rules.ignored(b"sub/a.log", False)
    assert rules.ignored(b"sub/only", False)
    assert not rules.ignored(b"only", False)


NAMES = st.text(alphabet="abx.*[]-!#\\ ", min_size=1, max_size=4).filter(
    lambda name: name.strip(" .") and not name.startswith(("#", "!", "-"))
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PIECES = st.sampled_from(["a", "b", "x", "*", "**", "?", "[ab]", "[!a]", "[a-x]", "/", "/", ".", "!", "\\*", " "])
PATTERNS = st.lists(st.lists(PIECES, min_size=1, max_size=6).map("".join), min_size=1, max_size=4)


@given(patterns=PATTERNS, paths=st.lists(PATHS, min_size=1, max_size=12, unique=True))
@settings(max_examples=50)
def test_git_agrees_on_anything(
    tmp_path_factory: pytest.TempPathFactory, patterns: list[str], paths: list[str]
) -> None:
    need_git()
    directory = tmp_path_factory.mktemp("ignore")
    git(directory, "init", "-q")
    (directory / ".gitignore").write_text("\n".join(patterns) + "\n")
    listing = b"".join(path.encode() + b"\0" for path in paths)
    # With --non-matching and --verbose, every path comes back with the pattern that decided, if any.
    words = ("check-ignore", "-z", "--no-index", "--verbose", "--non-matching", "--stdin")
    answer = git(directory, *words, data=listing, codes=(0, 1))
    fields = answer.split(b"\0")[:-1]
    rules = IgnoreRules({(): "\n".join(patterns).encode()})
    for pattern, path in zip(fields[2::4], fields[3::4], strict=True):
        expected = bool(pattern) and not pattern.startswith(b"!")
        assert rules.ignored(path, False) is expected, (patterns, path, pattern)


def test_no_name_makes_a_pattern_take_long(tmp_path: Path) -> None:
    rules = IgnoreRules({(): ("*a" * 60 + "b\n").encode() * 20 + ("**/a/" * 30 + "x\n").encode()})
    started = time.process_time()
    rules.ignored(b"a" * 250, False)
    rules.ignored(b"/".join([b"a"] * 60), False)
    assert time.process_time() - started < 20
