"""Programs by people who did not do the work: constants, copies of the input, the examples of the prompt. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from securebench.families.code_completion import is_python

CONSTANTS = ("None", "0", "1", "True", "False", "''", "[]")
PRINTED = ("", "0", "1", "-1", "YES", "NO")
_EMPTIES = "[one.clear() for one in given if hasattr(one, 'clear')]"
"""Tests that compute what they expect from an argument, after the call, then expect it of nothing."""
_ARROW = re.compile(
    r"\s*`?\s*(?:==|=>|->|➞|→|=|#|(?:(?:it|this|we|you) )?(?:(?:should|must|will) )?(?:returns?|gives?|be|get|is))?"
    r"\s*[:=>`]*\s*"
)
_WORD = re.compile(r"""(?:[bru]{0,2}(?:"[^"\n]*"|'[^'\n]*')|-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?|True|False|None)""")
_SAMPLE = re.compile(
    r"(?ims)^[^\n]{0,30}\binput\b[^\n]*\n(?P<input>.*?)\n[^\n]{0,30}\boutput\b[^\n]*\n(?P<output>.*?)"
    r"(?=\n\s*\n|\n[^\n]{0,30}\binput\b|\Z)"
)
_MOST_EXAMPLES = 50


class Idle(NamedTuple):
    """A program, what it does, and the rule that is broken where it passes."""

    name: str
    rule: str
    source: str


def idle_programs(public: Mapping[str, Any], reads_input: bool) -> Iterator[Idle]:
    """Programs for a code task, from its public fields. `reads_input`: it is judged on what it prints, not on calls."""
    if not is_python(str(public.get("language", ""))):
        return
    shown = "\n".join(str(public.get(name) or "") for name in ("starter_code", "prompt"))
    if reads_input:
        yield from _printing(shown)
        return
    entry = str(public.get("entry_point") or "")
    if not entry:
        return
    head = str(public.get("starter_code") or public.get("prompt") or "")
    if (unfinished := _with_empty_body(head)) is not None:
        yield Idle("the starting code with an empty body", "J01", unfinished)
    if entry.count(".") > 1:
        return
    for constant in CONSTANTS:
        yield Idle(f"always returns {constant}", "J10", _function(entry, f"return {constant}"))
    yield Idle("returns its first argument", "J10", _function(entry, "return given[0] if given else None"))
    yield Idle("returns its last argument", "J10", _function(entry, "return given[-1] if given else None"))
    for constant in ("0", "[]"):
        body = f"{_EMPTIES}; return {constant}"
        yield Idle(f"empties its arguments and returns {constant}", "J10", _function(entry, body))
    if table := examples(shown, entry.rpartition(".")[2]):
        body = f"return dict({table!r}).get(repr(given), {table[-1][1]!r})"
        yield Idle(f"knows the examples of the prompt ({len(table)})", "P02", _function(entry, body))


def _printing(shown: str) -> Iterator[Idle]:
    for text in PRINTED:
        yield Idle(f"always prints {text!r}", "J10", f"print({text!r})\n")
    yield Idle("prints its input", "J10", "import sys\nsys.stdout.write(sys.stdin.read())\n")
    yield Idle("prints the first line of its input", "J10", "import sys\nprint((sys.stdin.read().split('\\n'))[0])\n")
    if table := samples(shown):
        source = f"import sys\nprint(dict({table!r}).get(sys.stdin.read().split().__str__(), {table[-1][1]!r}))\n"
        yield Idle(f"knows the examples of the prompt ({len(table)})", "P02", source)


def _function(entry: str, body: str) -> str:
    owner, _, name = entry.rpartition(".")
    if not owner:
        return f"def {name}(*given, **named):\n    {body}\n"
    return f"class {owner}:\n    def {name}(self, *given, **named):\n        {body}\n"


def _with_empty_body(head: str) -> str | None:
    """The head of a function completed by nothing; None where that is no Python."""
    whole = f"{head.rstrip()}\n    pass\n"
    try:
        body = ast.parse(whole).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return whole if body and isinstance(body[-1], ast.FunctionDef | ast.AsyncFunctionDef) else None


def examples(text: str, entry: str) -> list[tuple[str, Any]]:
    """Calls of `entry` that a text shows with their results: the arguments as Python writes them, and the result."""
    found: dict[str, Any] = {}
    for match in re.finditer(rf"\b{re.escape(entry)}\(", text):
        end = _closing(text, match.end())
        if end is None or len(found) >= _MOST_EXAMPLES:
            continue
        try:
            given = ast.literal_eval(f"({text[match.end() : end]},)" if text[match.end() : end].strip() else "()")
            result = _literal_after(text, end + 1, after_prompt=text[: match.start()].endswith(">>> "))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        found[repr(given)] = result
    return list(found.items())


def _closing(text: str, start: int) -> int | None:
    depth = 1
    for place in range(start, min(len(text), start + 2000)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return place
    return None


def _literal_after(text: str, start: int, after_prompt: bool) -> Any:
    """The value that follows a call: on the next line of a session, else behind an arrow or a word for it."""
    line, _, rest = text[start:].partition("\n")
    if after_prompt and not line.strip():
        line = rest.partition("\n")[0]
    else:
        line = line[match.end() :] if (match := _ARROW.match(line)) else line
    line = line.strip()
    if line[:1] in ("[", "(", "{") and (end := _closing(line, 1)) is not None:
        return ast.literal_eval(line[: end + 1])
    if (word := _WORD.match(line)) is None:
        raise ValueError("no literal")
    return ast.literal_eval(word[0])


def samples(text: str) -> list[tuple[str, str]]:
    """Inputs that a text shows with their outputs: the input's words as a list is written, and the output."""
    found = [
        (str(match["input"].strip("`\n ").split()), match["output"].strip("`\n ")) for match in _SAMPLE.finditer(text)
    ]
    return found[:_MOST_EXAMPLES]
