"""Code that the standard library makes out of text on behalf of ordinary programs, and how to know it is harmless.

Some functions of the standard library call eval, exec or compile: named tuples, data classes, string annotations,
plural forms, timing a callable, mock signatures. Any of them can be made to carry foreign text (a field's name, an
annotation, a patched global), so none is trusted for being who it is: what it made is looked at.

- `names`: the code mentions no name but those of the template, so it can call nothing else and touch no attribute;
- `annotation`: only instructions that a call-free annotation consists of;
- `dataclass`: the text is made of assignments, comparisons and calls of the template's own functions, and the code
  is what that text compiles to;
- `template`: the code is what the template compiles to, with one identifier filled in;
- `tree`: a syntax tree is made, not code; it may not claim the file of a library or of the program.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPUTIES = (
    ("/collections/__init__.py", "namedtuple", "names", frozenset({"_tuple_new"})),
    ("/gettext.py", "c2py", "names", frozenset({"func", "isinstance", "int", "_as_int", "_as_int2"})),
    ("/timeit.py", "__init__", "names", frozenset({"inner", "_setup", "_stmt"})),
    ("/unittest/mock.py", "_set_signature", "template", ("def ", "mock")),
    ("/unittest/mock.py", "_set_async_signature", "template", ("async def ", "await mock")),
    ("/typing.py", "_evaluate", "annotation", None),
    ("/typing.py", "__init__", "annotation", None),
    ("/annotationlib.py", "evaluate", "annotation", None),
    ("/annotationlib.py", "__forward_code__", "annotation", None),
    ("/annotationlib.py", "get_annotations", "annotation", None),
    ("/inspect.py", "get_annotations", "annotation", None),
    ("/inspect.py", "<dictcomp>", "annotation", None),
    ("/inspect.py", "wrap_value", "annotation", None),
    ("/dataclasses.py", "_create_fn", "dataclass", None),
    ("/dataclasses.py", "add_fns_to_class", "dataclass", None),
    ("/ast.py", "parse", "tree", None),
    ("/threading.py", "invoke_excepthook", "tree", None),
)
"""File in the standard library, function, and the check its code must pass."""

_ANNOTATIONS = (
    "a", "None", "'a'", "a.b.c", "a[b]", "a[b, c]", "a[b, 'x', 1, -1, ...]", "a[[b, c], d]", "a | b | None", "a[()]",
    "a[b[c] | None, [1, 2, 3]]", "a.b[c.d]", "[a, b]", "(a, b)", "a[True]",
)  # fmt: skip


def annotation_opcodes() -> frozenset[int]:
    """The instructions of call-free annotations, as this very interpreter makes them."""
    found: set[int] = set()
    for text in _ANNOTATIONS:
        found.update(compile(text, "<sample>", "eval", 0, True).co_code[::2])
    return frozenset(found)


def only_names(code: Any, allowed: Any) -> bool:
    """Whether `code`, and what is nested in it, mentions only `allowed` names."""
    kind: Any = "@type"
    code_type: Any = "@code"
    waiting = [code]
    while waiting:
        one = waiting.pop()
        for name in one.co_names:
            if name not in allowed:
                return False
        for const in one.co_consts:
            if kind(const) is code_type:
                waiting.append(const)
    return True


def is_annotation(code: Any) -> bool:
    """Whether `code` only looks names up, takes attributes and items of them, and puts them together."""
    kind: Any = "@type"
    code_type: Any = "@code"
    opcodes: Any = "@opcodes"
    for const in code.co_consts:
        if kind(const) is code_type:
            return False
    steps = code.co_code
    index = 0
    while index < steps.__len__():
        if steps[index] not in opcodes:
            return False
        index += 2
    return True


CALLS = frozenset({
    "hash", "type", "super", "isinstance", "FrozenInstanceError", "__dataclass_builtins_object__.__setattr__",
    "BUILTINS.object.__setattr__", "__dataclass_builtins_object__", "self.__post_init__", ".__setattr__",
    ".__delattr__", "__builtins__.object.__setattr__", "__dataclass_type_error__", "__dataclasses_recursive_repr",
    "__BUILTINS.object.__setattr__", "object.__setattr__",
})  # fmt: skip
"""What the text of a data class may call, besides its own default factories."""

BEFORE_GROUPS = frozenset({"if", "in", "is", "return", "or", "and", "not", "else", "raise", "elif"})
REFUSED_WORDS = frozenset({
    "lambda", "for", "while", "import", "from", "async", "await", "yield", "global", "nonlocal", "with", "class",
    "try", "except", "finally", "assert", "match",
})  # fmt: skip


def is_dataclass_text(text: str) -> bool:
    """Whether the text has the shape that dataclasses gives it, with nothing slipped in through a name."""
    calls: Any = "@calls"
    groups: Any = "@groups"
    refused: Any = "@refused"
    is_string: Any = "@is_string"
    text = text.replace("@__dataclasses_recursive_repr()", "")
    size = text.__len__()
    index = 0
    earlier = before = ""  # the two tokens, or characters, before this one
    while index < size:
        char = text[index]
        if char in " \n":
            index += 1
            continue
        end = index + 1
        if char == "_" or char.isidentifier() or (char == "." and before == ")"):
            while end < size and (text[end] in "._" or ("a" + text[end]).isidentifier()):
                end += 1
            for part in text[index:end].split("."):
                if part in refused:
                    return False
        elif char in "'\"":
            end = text.find(char, index + 1) + 1
            if not end or not is_string(text[index + 1 : end - 1], before) or text[end : end + 1] in ("'", '"'):
                return False
            char = "string"
        elif char == "(":
            word = before.isidentifier() or "." in before
            factory = "." not in before and before.startswith(("_dflt_", "__dataclass_dflt_"))
            if before in (")", "}", "string") or (
                word and before not in calls and before not in groups and earlier != "def" and not factory
            ):
                return False
        elif char not in "){},:=<>!+-*0123456789" or text[index : end + 1] in (":=", "**"):
            return False
        earlier = before
        before = char if char == "string" else text[index:end]
        index = end
    return True


def is_data_string(inside: str, prefix: str) -> bool:
    """Whether a string in that text is plain, or a formatted one that only shows attributes."""
    if "\n" in inside or "\\" in inside:
        return False
    if prefix != "f":
        return not prefix.isidentifier() or prefix == "in"
    for piece in inside.split("{")[1:]:
        name, brace, _ = piece.partition("}")
        if not brace:
            return False
        for part in name.replace("!r", "").split("."):
            if not part.isidentifier():
                return False
    return True
