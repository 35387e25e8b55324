"""Join Python to the code its task starts with. Decided on syntax trees; nothing is run.

`join` is for what a model replied, which may have lost its indentation; `completed` for what was made to stand behind
the starting code: samples and reference solutions."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

MAX_SOURCE = 64 * 1024
"""Characters that are parsed, which takes a second at most; what is longer stands as it is."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_ONLY_INSIDE = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await)


class Joined(StrEnum):
    ALONE = "alone"
    AFTER_PREAMBLE = "after_preamble"
    CONTINUED = "continued"


def join(answer: str, starter: str | None, prompt: str, entry_point: str | None) -> tuple[str, Joined]:
    """The whole program, and how it was made. The rules are those of `code_answer`."""
    start = _Start.of(starter, prompt, entry_point)
    if start is None:
        return answer, Joined.ALONE
    for text in dict.fromkeys((answer, textwrap.dedent(answer))):
        module = _parse(text)
        if module is not None and _binds(module, start.name):
            return _with_preamble(text, module, start)
    if start.is_open:
        for text in start.continuations(answer):
            module = _parse(text)
            if module is not None and start.grew(module):
                return text, Joined.CONTINUED
    return answer, Joined.ALONE


def completed(text: str, starter: str | None, prompt: str, entry_point: str | None) -> tuple[str, Joined]:
    """The program that a completion makes. One that binds the entry point at its top level is whole: only the starting
    code's other statements go before it. Any other stands behind the starting code, byte for byte; alone where the
    task starts with no code."""
    start = _Start.of(starter, prompt, entry_point)
    if start is None:
        return text, Joined.ALONE
    module = _parse(text)
    if module is not None and _binds(module, start.name):
        return _with_preamble(text, module, start)
    return start.text + text, Joined.CONTINUED


@dataclass(frozen=True, slots=True)
class _Start:
    """The code a task starts with. It is open when its last statement is what the answer may continue."""

    text: str
    parsed: str  # the text, with a body for its last function where that has none
    module: ast.Module
    name: str
    is_open: bool

    @classmethod
    def of(cls, starter: str | None, prompt: str, entry_point: str | None) -> _Start | None:
        """The starting code of a task: its `starter_code`, or its prompt where that is the head of what to write."""
        name = entry_point.split(".")[0] if entry_point else None
        return cls.read(starter, name) if starter else cls.read(prompt, name, must_open=True)

    @classmethod
    def read(cls, text: str, name: str | None, must_open: bool = False) -> _Start | None:
        """None for what is not Python, not even with a body for its last function."""
        for parsed in (text, _completed(text)):
            module = _parse(parsed)
            if module is not None and module.body:
                break
        else:
            return None
        last = module.body[-1]
        if name is None and not must_open and isinstance(last, _DEFINITIONS):
            name = last.name
        is_open = isinstance(last, _DEFINITIONS) and last.name == name
        return None if name is None or (must_open and not is_open) else cls(text, parsed, module, name, is_open)

    def preamble(self, answer: ast.Module) -> list[str]:
        """The lines of its top-level statements, but for those that bind the name, those that the answer has itself
        and those that do nothing."""
        imports = {ast.dump(node) for node in answer.body if isinstance(node, _IMPORTS)}
        defined = {name for node in answer.body if not isinstance(node, _IMPORTS) for name in _bound(node)}
        lines = _lines(self.parsed)
        kept: list[str] = []
        for node in self.module.body:
            bound = _bound(node)
            repeated = ast.dump(node) in imports if isinstance(node, _IMPORTS) else bool(bound) and bound <= defined
            if self.name not in bound and not repeated and not _is_constant(node):
                first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
                kept += lines[first - 1 : node.end_lineno]
        return kept

    def continuations(self, answer: str) -> Iterator[str]:
        """The ways an answer may go on from here."""
        head = self.text.rstrip(" \t\n\r")
        indent = self._body_indent()
        yield self.text + ("\n" if self.text == head else "") + answer
        yield f"{head}\n{textwrap.indent(textwrap.dedent(answer), indent)}"
        yield f"{head}\n{indent}{answer.lstrip()}"

    def grew(self, module: ast.Module) -> bool:
        """Whether the open statement holds more than before, and all that stood before it is still there."""
        count = len(self.module.body)
        if len(module.body) < count:
            return False
        last = module.body[count - 1]
        same = isinstance(last, type(self.module.body[-1])) and getattr(last, "name", None) == self.name
        return same and (self.parsed != self.text or _size(last) > _size(self.module.body[-1]))

    def _body_indent(self) -> str:
        """What stands before the statements of the innermost open function."""
        block = self.module.body
        while isinstance(block[-1], _DEFINITIONS):
            block = block[-1].body
        line = _lines(self.parsed)[block[0].lineno - 1]
        return line[: len(line) - len(line.lstrip())]


def _with_preamble(text: str, module: ast.Module, start: _Start) -> tuple[str, Joined]:
    preamble = start.preamble(module)
    if not preamble:
        return text, Joined.ALONE
    lines, after = _lines(text), _after_futures(module)
    whole = "\n".join([*lines[:after], *preamble, *lines[after:]])
    return (whole, Joined.AFTER_PREAMBLE) if _parse(whole) is not None else (text, Joined.ALONE)


def _after_futures(module: ast.Module) -> int:
    """How many lines come first because imports from the future have to."""
    futures = [n for n in module.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    if not futures:
        return 0
    last = futures[-1].end_lineno or 0
    return max(node.end_lineno or 0 for node in module.body if node.lineno <= last)


def _parse(text: str) -> ast.Module | None:
    """None for what is not a Python module; a `return` outside a function makes none, though the parser takes it."""
    if len(text) > MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if any(isinstance(node, _ONLY_INSIDE) for node in _outside_functions(module)) else module


def _outside_functions(module: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _completed(text: str) -> str:
    """The text with a body for a header that has none yet."""
    head = text.rstrip(" \t\n\r")
    last = head.rpartition("\n")[2]
    open_line = text[len(head) :].rpartition("\n")[2]
    indent = open_line or last[: len(last) - len(last.lstrip())] + "    "
    return f"{head}\n{indent}pass\n"


def _binds(module: ast.Module, name: str) -> bool:
    return any(name in _bound(node) for node in module.body)


def _bound(statement: ast.stmt) -> set[str]:
    """The names a top-level statement binds, also within `if`, `try`, `with` and loops."""
    names: set[str] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)
    return names


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _size(node: ast.AST) -> int:
    return sum(1 for _ in ast.walk(node))


def _lines(text: str) -> list[str]:
    """Lines as Python's parser counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
