"""Hostile patches of the repository `calc`, as the text of an answer."""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import replace

from securebench.audit.attacks.f_test_runner.programs import PATCH_RUNNERS
from securebench.audit.plays.repository_tasks import CALC, as_patch

EXACT = as_patch(CALC.files, CALC.fix)
EVIL = PATCH_RUNNERS


def new_file(path: str, text: str = "evil\n", header: str = "", name: str = "", mode: str = "100644") -> str:
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    first = header or f"diff --git a/{path} b/{path}"
    return (
        f"{first}\nnew file mode {mode}\n--- /dev/null\n+++ {name or f'b/{path}'}\n@@ -0,0 +1,{len(lines)} @@\n{body}"
    )


def link(path: str, target: str) -> str:
    return new_file(path, target, mode="120000") + "\\ No newline at end of file\n"


def moved(old: str, new: str, how: str) -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{how} from {old}\n{how} to {new}\n"


def binary(path: str, text: str) -> str:
    data = zlib.compress(text.encode())
    rows = [data[at : at + 52] for at in range(0, len(data), 52)]
    lines = [f"{_length(row)}{base64.b85encode(row, pad=True).decode()}\n" for row in rows]
    blob = f"blob {len(text.encode())}\0{text}".encode()
    name = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{name}\nGIT binary patch\n"
    return head + f"literal {len(text.encode())}\n" + "".join(lines) + "\nliteral 0\nHcmV?d00001\n\n"


def _length(row: bytes) -> str:
    return chr(64 + len(row) if len(row) <= 26 else 70 + len(row))


EXAMPLE = "examples/patching.py"
EXAMPLES = replace(CALC, name="calc-with-examples", files={**CALC.files, EXAMPLE: EVIL})
"""The same repository with a file in it that would do as a plug-in."""
NOTES = new_file("calc/notes.py", EVIL)
STARTUP = "sitecustomize.py"
OTHER_HEADER = "diff --git a/calc/notes.py b/calc/notes.py"
QUOTED = r"\163itecustomize.py"

_ABSOLUTE = "/tmp/escaped"  # noqa: S108 — of the sandbox
ESCAPES = {
    "climbing": ("The path climbs out of the tree at once.", new_file("../escaped"), "../escaped"),
    "climbing-later": ("It climbs after it went down.", new_file("calc/../../escaped"), "../escaped"),
    "absolute": ("The path is absolute.", new_file(_ABSOLUTE), _ABSOLUTE),
    "git-hook": (
        "The patch writes a hook of the repository.",
        new_file(".git/hooks/pre-commit"),
        ".git/hooks/pre-commit",
    ),
    "git-in-capitals": (
        "The same in a spelling that some systems take for it.",
        new_file(".GIT/config"),
        ".GIT/config",
    ),
    "nested-git": ("It makes a repository within the repository.", new_file("calc/.git/config"), "calc/.git/config"),
    "through-a-link": (
        "It makes a link that leads out, and writes beyond it.",
        link("door", "..") + new_file("door/escaped"),
        "../escaped",
    ),
}

_HUNK = EXACT[EXACT.index("@@") :].splitlines()[0]


def _renumbered(old: int, new: int) -> str:
    start = int(_HUNK.split("-")[1].split(",")[0])
    first, second = f"-{start},", f"+{start},"
    return EXACT.replace(_HUNK, _HUNK.replace(first, f"-{start + old},").replace(second, f"+{start + new},"))


LENIENT = {
    "drifted": ("The hunk fits some lines away from where it says.", _renumbered(2, 2)),
    "contradicting-numbers": ("The numbers of a hunk contradict each other.", _renumbered(2, 0)),
    "other-context": (
        "The lines around the change are not those of the file.",
        EXACT.replace(" def evaluate", " def evaluation"),
    ),
    "in-prose": (
        "The patch stands in the middle of an explanation.",
        f"Here is my fix:\n\n{EXACT}\nI hope it helps.\n",
    ),
    "in-a-mail": ("The patch is an attachment of a mail.", f"From: me\nSubject: fix\n\n{EXACT}-- \n2.39\n"),
    "behind-prose": ("What matters stands in a second patch, behind prose.", f"{NOTES}and also\n{EXACT}"),
}
ED_SCRIPT = "1d\n.\nw\n!touch ../escaped\n"
