"""The only code that makes and runs modules: by their name, from where `imports.locate` finds them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def create_module(self: Any, spec: Any) -> Any:  # noqa: ARG001
    """A new module for our own idea of `spec.name`; None lets the import system make an empty one."""
    kind_of: Any = "@type"
    text: Any = "@str"
    banned: Any = "@is_banned"
    hollow: Any = "@hollow"
    make_module: Any = "@make_module"
    refuse: Any = "@refuse"
    getframe: Any = "@getframe"
    failure: Any = "@failure"
    below: Any = "@issubclass"
    name = spec.name
    if kind_of(name) is not text:
        return None
    if banned(name):
        return hollow(name)
    made = make_module(name)
    if made is False:
        raise refuse(("reload", "a second " + name), getframe(1))
    if below(kind_of(made), failure):
        raise made
    return made


def make_module(name: str) -> Any:
    """A builtin or extension module by its name, the exception that came instead, or False for one there is once."""
    banned: Any = "@is_banned"
    once: Any = "@once"
    locate: Any = "@locate"
    spec: Any = "@namespace"
    builtin: Any = "@create_builtin"
    dynamic: Any = "@create_dynamic"
    mend: Any = "@mend"
    everything: Any = "@everything"
    if banned(name) or name in once:
        return False
    found = locate(name)
    if found is None or found[0] not in ("builtin", "extension"):
        return None
    try:
        made = (builtin if found[0] == "builtin" else dynamic)(spec(name=name, origin=found[1]))
    except everything as error:
        error.__traceback__ = None  # this frame's code has the originals
        return error
    mend(name, made)
    return made


def exec_module(self: Any, module: Any) -> None:  # noqa: ARG001
    """Run a module's own code in it, and only that. Raises the denial for one that has run before."""
    kind_of: Any = "@type"
    text: Any = "@str"
    locate: Any = "@locate"
    banned: Any = "@is_banned"
    run_module: Any = "@run_module"
    run_builtin: Any = "@exec_builtin"
    run_dynamic: Any = "@exec_dynamic"
    modules: Any = "@modules"
    builtins: Any = "@builtins"
    absent: Any = "@absent"
    refuse: Any = "@refuse"
    getframe: Any = "@getframe"
    forget: Any = "@forget"
    mend: Any = "@mend"
    name = module.__spec__.name
    if kind_of(name) is not text or banned(name):
        return
    found = locate(name)
    if found is None:
        raise absent(name)
    caller = getframe(1).f_code
    if caller.co_filename != "<frozen importlib._bootstrap>" or caller.co_name != "_load_unlocked":
        raise refuse(("reload", "running " + name + " again"), getframe(1))
    if found[0] == "builtin" or found[0] == "extension":
        if found[0] == "builtin":
            run_builtin(module)
        else:
            run_dynamic(module)
        mend(name, module)
        return
    namespace = module.__dict__
    namespace["__builtins__"] = builtins
    try:
        run_module(name, namespace)
    finally:
        for one in forget:
            modules.pop(one, None)


def run_module(name: Any, namespace: Any) -> None:
    """Run the code that belongs to `name`."""
    kind_of: Any = "@type"
    text: Any = "@str"
    dictionary: Any = "@dict"
    code_of: Any = "@code_of"
    execute: Any = "@exec"
    if kind_of(name) is not text or kind_of(namespace) is not dictionary:
        return
    code = code_of(name)
    bless: Any = "@bless"
    bless(code)
    del bless, code_of
    execute(code, namespace)


def code_of(name: str) -> Any:
    """The code of a located module: from its cache where that is fresh, else from its source."""
    locate: Any = "@locate"
    read: Any = "@read"
    stat: Any = "@stat"
    translate: Any = "@compile"
    load: Any = "@load"
    rename: Any = "@rename"
    magic: Any = "@magic"
    tag: Any = "@tag"
    absent: Any = "@absent"
    number: Any = "@number"
    _, path, _, source = locate(name)
    if source is not None:
        return translate(source, path, "exec", 0, True)
    if tag:
        directory, _, file = path.rpartition("/")
        try:
            cached = read(directory + "/__pycache__/" + file[:-3] + tag)
            if cached[:4] == magic:
                flags = number(cached[4:8], "little")
                info = stat(path)
                fresh = number(cached[8:12], "little") == (info.st_mtime.__int__() & 0xFFFFFFFF)
                if flags == 1 or (flags == 0 and fresh and number(cached[12:16], "little") == info.st_size):
                    code = load(cached[16:])
                    rename(code, path)
                    return code
        except absent:
            pass
    return translate(read(path), path, "exec", 0, True)


def read_file(path: str) -> bytes:
    """A file's bytes, by the raw C class."""
    opened: Any = "@fileio"
    is_library: Any = "@is_library"
    if not is_library(path):
        return b""
    file = opened(path, "r")
    try:
        return file.readall()  # type: ignore[no-any-return]
    finally:
        file.close()


def hollow_module(name: str) -> Any:
    """A stand-in for a banned module, for library code that imports it and may never use it."""
    make: Any = "@module"
    bake_getattr: Any = "@getattr"
    made = make(name)
    made.__dict__["__getattr__"] = bake_getattr
    return made


def hollow_getattr(name: Any) -> Any:
    """What the stand-in answers: nothing for the import system's own questions, a denial for the rest."""
    kind_of: Any = "@type"
    text: Any = "@str"
    missing: Any = "@missing"
    refuse: Any = "@refuse"
    getframe: Any = "@getframe"
    if kind_of(name) is not text or name[:2] == "__":
        raise missing(name)
    raise refuse(("imports", "use of " + name + " of a blocked module"), getframe(1))


def mend_module(name: str, module: Any) -> None:
    """Replace what has no audit event in a module that was just made."""
    stubs: Any = "@stubs"
    for known, attribute, stub in stubs:
        if known == name and attribute in module.__dict__:
            module.__dict__[attribute] = stub
