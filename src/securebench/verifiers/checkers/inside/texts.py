"""Whose a program text is that an interpreter is handed, not as a file: the checker's own, or made of the workspace.

What is equal proves nothing alone: a candidate who knows a checker's words can leave a file with the same ones, so that
they would be taken for the candidate's and judged where its modules are loaded. So what the checker's own files say is
the checker's, and where both could be meant, nothing is executed at all."""

import os
import re

TESTS = "/tests"
OWN, THEIRS, UNCLEAR = "own", "theirs", "unclear"
MOST = 16 << 20
ACTS = re.compile(rb"[()\[\]{};$|&<>=\n`]")
STARTS = (b"exit", b"logout", b"exec", b"return", b"raise", b"import", b"from", b"del")


def whose(text, workspace, runs_words=False):
    """OWN, THEIRS for a file of the workspace word for word, UNCLEAR for what has one in it and could be either's.

    With `runs_words` a single word of the candidate's in it is enough: a shell that reads its program runs it."""
    text = _clean(text)
    if not text:
        return OWN
    own = [_clean(data) for _, data in _files(TESTS, MOST)]
    if any(text in data for data in own):
        return OWN
    equal = part = False
    for _, data in _files(workspace, len(text) + 64):
        data = _clean(data)
        if data == text:
            equal = True
        elif data in text and _acts(data, runs_words):
            part = True
    if not (equal or part):
        return OWN
    words = _words(text)
    said = any(words in _words(data) for data in own)  # with other quotes, or spread over lines
    if equal:
        return UNCLEAR if said else THEIRS
    return OWN if said else UNCLEAR


def _acts(data, runs_words):
    """Whether this could do anything as a part of a program."""
    if runs_words:
        return re.search(rb"[A-Za-z]", data) is not None
    return bool(data) and (ACTS.search(data) is not None or data.split()[0] in STARTS)


def _clean(data):
    return data.replace(b"\0", b"").strip()  # as a shell passes it on


def _words(data):
    return re.sub(rb"\\[nrt]?|[^A-Za-z0-9\\]+", b"", data)


def _files(root, most):
    for where, _, names in os.walk(root):
        for name in names:
            path = os.path.join(where, name)
            try:
                if os.lstat(path).st_size <= most:
                    with open(path, "rb") as file:
                        yield path, file.read(most + 1)
            except OSError:
                pass
