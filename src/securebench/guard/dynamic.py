"""Who may turn text into code, and run code: the guard's loader, and deputies whose product passes a check."""

from __future__ import annotations

import sys

from . import rules
from .bake import SECRET, SPACES, TRUSTED, bake
from .generated import (
    BEFORE_GROUPS,
    CALLS,
    DEPUTIES,
    REFUSED_WORDS,
    annotation_opcodes,
    is_annotation,
    is_data_string,
    is_dataclass_text,
    only_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def judge_code(event: str, args: Any, frame: Any) -> Any:
    """exec, compile, and code or function objects made by hand."""
    deputies: Any = "@deputies"
    harmless: Any = "@harmless"
    unlocked: Any = "@unlocked"
    coroutine: Any = "@coroutine"
    code = frame.f_code
    name, function = code.co_filename, code.co_name
    if event == "code.__new__" and name == coroutine and function == "coroutine":
        return None
    if unlocked and name[:17] == "<frozen importlib":
        return None
    if event in ("exec", "compile"):
        for file, known, check, names in deputies:
            if name == file and function == known:
                if harmless(event, args, frame, check, names):
                    return None
                return "dynamic_code", "code made through " + known
        return "dynamic_code", "eval, exec or compile"
    return "dynamic_code", event


def harmless(event: str, args: Any, frame: Any, check: str, names: Any) -> Any:
    """Whether what a deputy made, or is about to make, passes its check."""
    only_names: Any = "@only_names"
    is_annotation: Any = "@is_annotation"
    is_text: Any = "@is_text"
    library: Any = "@is_library"
    translate: Any = "@recompile"
    kind: Any = "@type"
    code_type: Any = "@code"
    text: Any = "@str"
    data: Any = "@bytes"
    if check == "tree":
        return event == "compile" and not library(args[1])
    if event == "compile":
        if check != "dataclass":
            return True
        source = args[0]
        return kind(source) is data and is_text(source.decode("utf-8", "replace"))
    made = args[0]
    if kind(made) is not code_type:
        return False
    if check == "names":
        return only_names(made, names)
    if check == "template":
        name = made.co_names[0] if made.co_names else ""
        source = names[0] + name + "(*args, **kwargs):\n    _checksig_(*args, **kwargs)\n    return " + names[1]
        return name.isidentifier() and made == translate(source + "(*args, **kwargs)")
    if check == "annotation":
        return is_annotation(made)
    source = frame.f_locals.get("txt")
    if kind(source) is not text or not is_text(source):
        return False
    return made == translate(source)


def recompile(text: str) -> Any:
    """The code of a text that was found harmless, to compare with."""
    translate: Any = "@compile"
    return translate(text, "<string>", "exec", 0, True)


def judge_attribute(event: str, args: Any, frame: Any) -> Any:
    """The code of a function: nobody's to change, and the guard's own not even to read."""
    spaces: Any = "@spaces"
    secret: Any = "@secret"  # noqa: S105 — a space, not a password
    kind: Any = "@type"
    text: Any = "@str"
    function: Any = "@function"
    frame_type: Any = "@frame"
    coroutine: Any = "@coroutine"
    if args.__len__() < 2:
        return None
    thing, name = args[0], args[1]
    if kind(name) is not text:
        return None
    if name == "f_code":
        if kind(thing) is frame_type and thing.f_globals is secret:
            return "tampering", "reading the guard's code"
        return None
    if name not in ("__code__", "__defaults__", "__kwdefaults__"):
        return None
    if kind(thing) is function:
        names = thing.__globals__
        for space in spaces:
            if names is space:
                return "tampering", "touching the guard's functions"
    if event != "object.__getattr__" and name == "__code__":
        code = frame.f_code
        if code.co_filename == coroutine and code.co_name == "coroutine":
            return None
        return "tampering", "changing a function's code"
    return None


def judge_import(event: str, args: Any, frame: Any) -> Any:  # noqa: ARG001
    """Shared libraries loaded around the lock, and what banned modules do."""
    if event == "import":
        return None if args[1] is None else ("imports", "loading a shared library")
    return "imports", event


def make_judges(blocked: frozenset[str], allowed_modules: frozenset[str], stdlib: str, is_library: Any) -> Any:
    """The subjects of dynamic code, attributes and imports: pairs of events and judge."""
    code_type = type(judge_code.__code__)
    names = bake(only_names, type=type, code=code_type)
    annotation = bake(is_annotation, type=type, code=code_type, opcodes=annotation_opcodes())
    text = bake(
        is_dataclass_text, calls=CALLS, groups=BEFORE_GROUPS, refused=REFUSED_WORDS, is_string=bake(is_data_string)
    )
    check = bake(
        harmless, only_names=names, is_annotation=annotation, is_text=text, is_library=is_library,
        recompile=bake(recompile, TRUSTED, compile=compile), code=code_type, type=type, str=str, bytes=bytes,
    )  # fmt: skip
    subjects = []
    coroutine = stdlib + "/types.py"
    if "dynamic_code" in blocked:
        deputies = tuple((stdlib + file, function, how, known) for file, function, how, known in DEPUTIES)
        judge = bake(
            judge_code, deputies=deputies, harmless=check, unlocked="imports" not in blocked, coroutine=coroutine
        )
        subjects.append((rules.CODE_EVENTS, judge))
    if "tampering" in blocked:
        judge = bake(
            judge_attribute, spaces=SPACES, secret=SECRET, type=type, str=str, function=type(make_judges),
            frame=type(sys._getframe()), coroutine=coroutine,
        )  # fmt: skip
        subjects.append((rules.ATTRIBUTE_EVENTS, judge))
    if "imports" in blocked:
        events = frozenset(event for event in rules.IMPORT_EVENTS if event.partition(".")[0] not in allowed_modules)
        subjects.append((events, bake(judge_import)))
    return tuple(subjects)
