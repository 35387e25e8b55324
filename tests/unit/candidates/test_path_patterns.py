"""Patterns over paths: what they cover, what they do not, and that none of them is slow."""

from __future__ import annotations

import time

import pytest

from securebench.candidates.path_patterns import PathPatterns


@pytest.mark.parametrize(
    "pattern, covered, not_covered",
    [
        ("package.json", ["package.json", "a/package.json", "package.json/x"], ["package.jsonx", "xpackage.json"]),
        ("/package.json", ["package.json"], ["a/package.json"]),
        ("pkg/test", ["pkg/test", "pkg/test/a/b"], ["x/pkg/test", "pkg/tests", "pkg"]),
        ("pkg/test/", ["pkg/test", "pkg/test/a/b"], ["x/pkg/test"]),
        ("pkg/**", ["pkg/a", "pkg/a/b"], ["pkg", "x/pkg/a"]),
        ("**/a", ["a", "x/a", "x/y/a", "x/a/b"], ["xa", "x/ab"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b/c"], ["a", "b", "ab", "x/a/b"]),
        ("pkg/", ["pkg", "x/pkg/a"], ["pkgs"]),
        ("X", ["X", "a/X"], ["Y"]),
        ("/**", ["a", "a/b"], []),
        ("**/*", ["a", "a/b"], []),
        ("/*", ["a", "a/b"], []),
        ("a/**/b/**/c/**/d", ["a/b/c/d", "a/1/b/2/c/3/d"], ["a/b/d", "a/c/b/d"]),
        ("a/**/b/**/c", ["a/b/c", "a/1/b/2/3/c", "a/b/b/c/c"], ["a/c", "a/c/b"]),
        ("*.py", ["x.py", "a/b/x.py", ".py"], ["x.pyc", "x.py.txt"]),
        ("src/*.py", ["src/x.py", "src/x.py/y"], ["src/a/x.py", "x.py"]),
        ("*a*b*", ["ab", "xaxbx", "d/aabb"], ["ba", "a/b"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "-x", "Xx"]),
        ("[!a]x", ["bx", "!x"], ["ax", "/x"]),
        ("[a!]x", ["ax", "!x"], ["bx"]),
        ("x[a][bc]", ["xab", "xac"], ["ab", "xa", "xa]", "xa[bc]"]),
        ("[]x", ["[]x"], ["x"]),
        ("a.b", ["a.b"], ["axb"]),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("**", ["a", "a/b"], []),
        ("*", ["a", "a/b"], []),
    ],
)
def test_pattern(pattern: str, covered: list[str], not_covered: list[str]) -> None:
    for canonical in (False, True):
        patterns = PathPatterns.of(["never", pattern], canonical)
        assert [path for path in covered if patterns.match(path) != pattern] == []
        assert [path for path in not_covered if patterns.match(path) is not None] == []


def test_giving_compares_as_written_and_taking_compares_canonical_keys() -> None:
    allowed, preserved = PathPatterns.of(["Pkg/é"]), PathPatterns.of(["Pkg/é"], canonical=True)
    assert allowed.match("Pkg/e\u0301") == "Pkg/é", "the same text"
    assert allowed.match("pkg/é") is None
    assert preserved.match("PKG/E\u0301/x") == "Pkg/é"


@pytest.mark.parametrize("pattern", ["", "/", "//", "a\\b", "a\nb", "../a", "a/./b", "a/..", "[z-a]", "x" * 1025])
def test_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        PathPatterns.of([pattern])


def test_pattern_may_be_exactly_as_long_as_allowed() -> None:
    assert PathPatterns.of(["x" * 1024]).match("x" * 1024) is not None


def test_no_patterns_cover_nothing() -> None:
    assert PathPatterns.of([]).match("a") is None


@pytest.mark.parametrize(
    "pattern, path",
    [
        ("*a" * 40 + "b", "a" * 250),
        ("**/a/" * 30 + "b", "a/" * 63 + "a"),
        ("**/*a*a*a*a/" * 10 + "b", ("a" * 60 + "/") * 63 + "a"),
        ("?*" * 60 + "b", "a" * 250),
    ],
)
def test_no_pattern_makes_matching_slow(pattern: str, path: str) -> None:
    began = time.process_time()
    assert PathPatterns.of([pattern]).match(path) is None
    assert time.process_time() - began < 5
