"""Functions that a program cannot talk out of their decision.

What a guard function needs is baked into its code as constants: a name written `"@thing"` in the source becomes the
thing itself. So there is no global to rebind, no builtin to shadow, no closure cell to write (from 3.13 a caught
exception's frame can), and no default to pass over. Each function belongs to one of three spaces, dictionaries that
serve as its globals, and by their identity the hook knows its own frames: nobody else can run code with them, because
making functions is refused.

- `OWN`: decides and explains. It has no privilege, because it handles the program's objects, and an object's `__eq__`
  may be `exec` in disguise, called from our frame.
- `TRUSTED`: reads and runs modules by name, and never touches an object the program made.
- `SECRET`: trusted, and holds an original that raises no event; its code cannot be read.
"""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_Function: Any = type(lambda: None)
_Code = type((lambda: None).__code__)
_FROZEN = "<frozen importlib._bootstrap>"


def _space() -> dict[str, object]:
    # Real builtins, for C code that imports on a baked function's behalf.
    return {"__name__": "<guard>", "__builtins__": builtins}


OWN = _space()
TRUSTED = _space()
SECRET = _space()
SPACES = (OWN, TRUSTED, SECRET)


def bake(function: Callable[..., Any], space: dict[str, object] = OWN, /, **values: object) -> Any:
    """The same function with its placeholders filled in. Raises KeyError for one that is not given."""
    code = function.__code__
    consts = tuple(_filled(const, values) for const in code.co_consts)
    code = code.replace(co_consts=consts, co_filename="<guard>")
    return _Function(code, space, function.__name__, function.__defaults__)


def bake_import(function: Callable[..., Any], space: dict[str, object], /, **values: object) -> Any:
    """The same for a step of the import system, named so that the interpreter leaves it out of tracebacks too."""
    made = bake(function, space, **values)
    code = made.__code__.replace(co_filename=_FROZEN, co_name="_call_with_frames_removed")
    return _Function(code, space, function.__name__, function.__defaults__)


def _filled(const: object, values: dict[str, object]) -> object:
    if type(const) is str and const[:1] == "@" and const[1:].isidentifier():
        return values[const[1:]]
    if isinstance(const, _Code):
        raise TypeError(f"{const.co_name} in a guard function would not be baked")
    return const
