"""What a candidate changed: the diff that is shown of it, and the patch that arrives as text."""

from __future__ import annotations

from securebench._canonical import digest_bytes
from securebench.candidates.patch_text import check_patch
from securebench.candidates.rendering import render
from securebench.candidates.tree import Tree, TreeEntry, delta_between
from securebench.errors import CandidateError


def diff(data: bytes) -> None:
    """What is rendered passes our own reader, names the file, and turns the old text into the new."""
    old, _, new = data.partition(b"\xff\xfe")
    blobs = {digest_bytes(text): text for text in (old, new)}
    name = "a b\\c.txt" if data[:1] == b"q" else "file.txt"
    before = Tree((TreeEntry.file(name, digest_bytes(old), len(old)),))
    after = Tree((TreeEntry.file(name, digest_bytes(new), len(new), executable=data[:1] == b"x"),))
    text = render(delta_between(before, after), lambda digest, limit: blobs[digest]).text
    if before == after:
        assert text == ""
        return
    [section] = check_patch(text)
    if "GIT binary patch" not in text and old != new:
        assert _applied(old.decode(), text) == new.decode()
    assert section.name


def _applied(old: str, patch: str) -> str:
    """The new text by a patch of one file, taken literally: every line of context has to match."""
    lines, done, at, mark = _lines(old), list[str](), 0, ""
    rows = patch.split("\n")
    start = next(number for number, row in enumerate(rows) if row.startswith("@@ "))
    for row in rows[start:-1]:
        if row.startswith("@@ "):
            first, _, count = row.split()[1][1:].partition(",")
            target = int(first) - (count != "0")
            done += lines[at:target]
            at = target
        elif row.startswith("\\"):
            if mark != "-":
                done[-1] = done[-1].removesuffix("\n")
        else:
            mark, content = row[0], row[1:] + "\n"
            if mark in " -":
                assert lines[at].removesuffix("\n") + "\n" == content
                at += 1
            if mark != "-":
                done.append(lines[at - 1] if mark == " " else content)
    return "".join(done + lines[at:])


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def patch(data: bytes) -> None:
    """Sections or the candidate's error; no section without a name or without a header of its own."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"s" else "replace")
    try:
        sections = check_patch(text)
    except CandidateError:
        return
    assert 0 < len(sections) <= text.count("diff --git ") + text.count("--- ")
    assert all(section.name for section in sections)
