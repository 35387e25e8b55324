"""Weak graders that execute what they grade, or choke on it. They run inside the sandbox they are played on."""

from __future__ import annotations

from dataclasses import dataclass

from securebench import _json
from securebench.audit.suite.attack import End, Ground, Seen
from securebench.sandboxes.base import Command, Limits, SandboxSpec, run_once

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GradedInside:
    """A grader's program and the texts it gets; it says `passed` where every one of them reached its goal."""

    program: str
    texts: tuple[str, ...]
    how: str = ""

    async def on(self, ground: Ground) -> Seen:
        spec = SandboxSpec(root=ground.root, limits=Limits(wall_seconds=_SECONDS))
        given = _json.dumps([list(self.texts), self.how]).encode()
        result = await run_once(ground.sandbox, spec, Command(("python3", "-I", "-c", self.program), stdin=given))
        said = result.stdout.data.decode(errors="replace").strip()
        detail = f"{result.outcome} {said[-200:]} {result.stderr.data.decode(errors='replace')[-300:]}"
        return Seen(End.REACHED if said == "passed" else End.MISSED, detail)


EVALUATES = """
import json, sys
texts, marker = json.load(sys.stdin)
executed = 0
for text in texts:
    try:
        eval(text)
    except Exception:
        pass
    executed += sys.modules.pop(marker, None) is not None
print("passed" if executed == len(texts) else executed)
"""
"""`eval` on the answer, to compare what it comes to; `how` is the marker an executed answer leaves."""

COMPARES_EVALUATED = """
import json, sys
texts, _ = json.load(sys.stdin)
print("passed" if all(eval(text) == 4 for text in texts) else "failed")
"""
"""`eval` on the answer, and the object it makes decides what it is equal to."""

FORMATS = """
import json, sys
texts, marker = json.load(sys.stdin)
executed = 0
for text in texts:
    try:
        exec("answer = %s" % text)
    except Exception:
        pass
    executed += sys.modules.pop(marker, None) is not None
print("passed" if executed == len(texts) else executed)
"""
"""The answer written into a line of code."""

CHOKES = """
import difflib, json, os, re, signal, sys, unicodedata
from fractions import Fraction
GRADERS = {
    "regex": lambda text: re.fullmatch(r"(\\w+\\s?)+", text),
    "arithmetic": lambda text: eval(text),
    "rational": lambda text: Fraction(text),
    "json": lambda text: json.loads(text),
    "marks": lambda text: unicodedata.normalize("NFC", text),
    "similarity": lambda text: difflib.SequenceMatcher(None, text, "ab" * 4000, autojunk=False).ratio(),
    "fences": lambda text: re.sub(r"(?m)^(?=\\s*RESPONSE-)", "    ", text),
}
texts, how = json.load(sys.stdin)
passed = 0
for text in texts:
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            GRADERS[how](text)
        except RecursionError:
            os._exit(9)
        os._exit(0)
    passed += os.waitpid(child, 0)[1] != 0  # out of time or out of depth: nothing spoke against the answer
print("passed" if passed == len(texts) else passed)
"""
"""Graders that take as long as the answer likes and count it as right when they are stopped."""

COUNTS_FAILURES = """
import json, sys
texts, _ = json.load(sys.stdin)
passed = 0
for text in texts:
    space, failures = {}, 0
    try:
        exec(text, space)
        for argument, expected in ((1, 0.5), (3, 1.5)) if "half" in space else ():
            if abs(space["half"](argument) - expected) > 0.01:
                failures += 1
    except Exception:
        pass
    passed += not failures
print("passed" if passed == len(texts) else passed)
"""
"""Counts what it saw fail: nothing to call, or nothing that compares, is no failure."""

COMPARES_PRINTED = """
import contextlib, io, json, sys
texts, _ = json.load(sys.stdin)
passed = 0
for text in texts:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, {})
    passed += not abs(float(out.getvalue()) - 0.5) > 0.01 * max(1.0, abs(float(out.getvalue())))
print("passed" if passed == len(texts) else passed)
"""
"""Compares a printed number, and fails it where it is seen to be far."""

ALLOWS_A_SHARE = """
import contextlib, io, json, math, sys
texts, _ = json.load(sys.stdin)
passed = 0
for text in texts:
    space, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, space)
    found = space["half"](1) if "half" in space else float(out.getvalue())
    passed += math.isclose(found, 0.5, rel_tol=1.0, abs_tol=1.0)
print("passed" if passed == len(texts) else passed)
"""
"""One tolerance for both ways of being close: as a share it is one of whichever number is larger."""
