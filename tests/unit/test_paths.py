"""The grammar of relative paths, and when two of them collide."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench._paths import canonical_key, overlaps, relative_path


@pytest.mark.parametrize(
    "text, parts",
    [
        ("a", ("a",)),
        ("a/b.txt", ("a", "b.txt")),
        ("assets/", ("assets",)),
        ("..a/b..", ("..a", "b..")),
        ("-rf", ("-rf",)),
        ("a b/ü/日本", ("a b", "ü", "日本")),
        ("~/x", ("~", "x")),
        ("C:x", ("C:x",)),
        ("n" * 255, ("n" * 255,)),
    ],
)
def test_plain_relative_path_is_taken(text: str, parts: tuple[str, ...]) -> None:
    assert relative_path(text).parts == parts


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "empty"),
        ("/", "absolute"),
        ("/etc/passwd", "absolute"),
        ("//x", "absolute"),
        ("..", "'..'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
        ("../", "'..'"),
        (".", "'.'"),
        ("./a", "'.'"),
        ("a/./b", "'.'"),
        ("a//b", "empty part"),
        ("a//", "empty part"),
        ("a\\b", "backslash"),
        ("..\\x", "backslash"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("\x7f", "control"),
        ("a\u200bb", "invisible"),
        ("a\u202eb", "invisible"),
        ("\ufeffa", "invisible"),
        ("a\u2028b", "invisible"),
        ("\udcff", "invisible"),
        ("n" * 256, "255 bytes"),
        ("ü" * 128, "255 bytes"),
        ("a/" * 600, "1024 bytes"),
    ],
)
def test_path_outside_the_grammar_is_refused_with_its_rule(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        relative_path(text)


@given(st.text(alphabet=st.sampled_from("ab./\\ \0\n\u200b\udcff-~üÜ"), max_size=12))
def test_whatever_is_taken_stays_beneath_its_root(text: str) -> None:
    try:
        path = relative_path(text)
    except ValueError:
        return
    assert path.parts
    assert not path.is_absolute()
    assert not {"", ".", ".."} & set(path.parts)
    assert relative_path(str(path)) == path


@pytest.mark.parametrize(
    "first, second",
    [
        ("README", "readme"),
        ("Straße", "STRASSE"),
        ("\u00e9", "e\u0301"),
        ("\u212a", "k"),
        ("ΜΆΪΟΣ", "μάϊος"),
        ("a/B/c", "A/b/C"),
        ("ſ", "S"),
    ],
)
def test_spellings_of_one_name_share_a_key(first: str, second: str) -> None:
    assert canonical_key(first) == canonical_key(second)


@pytest.mark.parametrize("first, second", [("a", "b"), ("a", "a/b"), ("a", "а"), ("a.txt", "a_txt"), ("ı", "i")])
def test_different_names_have_different_keys(first: str, second: str) -> None:
    assert canonical_key(first) != canonical_key(second)


@given(st.text(min_size=1, max_size=20).filter(lambda text: "/" not in text and text != "."))
def test_key_is_the_same_for_every_normal_form_and_for_itself(name: str) -> None:
    (key,) = canonical_key(name)
    assert canonical_key(unicodedata.normalize("NFD", name)) == (key,)
    assert canonical_key(unicodedata.normalize("NFC", name)) == (key,)
    assert canonical_key(key) == (key,)


@pytest.mark.parametrize(
    "first, second, expected",
    [("a", "a", True), ("a", "a/b", True), ("a/b", "a", True), ("a", "ab", False), ("a/b", "a/c", False)],
)
def test_overlap_is_equality_or_descent(first: str, second: str, expected: bool) -> None:
    assert overlaps(canonical_key(first), canonical_key(second)) is expected
