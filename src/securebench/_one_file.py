"""Several of our modules as one text, for a Python inside a sandbox, which has none of our files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

Modules = tuple[tuple[str, str], ...]
"""Names and sources, each after those it imports."""

_PACKAGE = Path(__file__).parent
_LOADER = """import sys, types
def load(name, source):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
"""


@cache
def our_modules(names: tuple[str, ...], prefix: str) -> Modules:
    """These modules of ours (dotted names beneath `securebench`), each renamed to `prefix` and the last part of its
    name; they find each other under the new names."""
    new = {f"securebench.{name}": prefix + name.rpartition(".")[2] for name in names}
    known = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(new, key=len, reverse=True))) + r")\b")
    sources = [(_PACKAGE / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8") for name in names]
    return tuple(
        (new[f"securebench.{name}"], known.sub(lambda found: new[found[0]], source))
        for name, source in zip(names, sources, strict=True)
    )


@cache
def one_text(modules: Modules) -> str:
    """A program that defines these modules, each in a namespace of its own."""
    return _LOADER + "".join(f"load({name!r}, {source!r})\n" for name, source in modules)


def call_main(modules: Modules) -> str:
    """A call of the last module's `main`."""
    return f"import sys; sys.modules[{modules[-1][0]!r}].main()\n"
