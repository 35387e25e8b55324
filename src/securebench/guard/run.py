"""Running the program as `__main__`, and ending without finalisers: hooks are gone before the last of them run."""

from __future__ import annotations

import sys

from .bake import TRUSTED, bake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def launch(namespace: Any) -> None:
    """Run the program and end the process. Never returns."""
    run_program: Any = "@run_program"
    finish: Any = "@finish"
    shown: Any = "@shown"
    leave: Any = "@leave"
    everything: Any = "@everything"
    status = 1
    try:
        try:
            run_program(namespace)
            status = 0
        except everything as error:
            status = shown(error)
        status = finish(status)
    finally:
        leave(status)


def run_program(namespace: Any) -> None:
    """Compile and run the program itself. It takes no source: whoever finds it can only run the program again."""
    execute: Any = "@exec"
    translate: Any = "@compile"
    kind_of: Any = "@type"
    dictionary: Any = "@dict"
    if kind_of(namespace) is not dictionary:
        return
    source: Any = "@source"
    path: Any = "@path"
    code = translate(source, path, "exec", 0, True)
    bless: Any = "@bless"
    bless(code)
    del bless, translate, source, path
    execute(code, namespace)


def shown(error: Any) -> int:
    """The exit status for what ended the program, after showing it as the interpreter would."""
    exiting: Any = "@exiting"
    whole: Any = "@whole"
    system: Any = "@sys"
    text: Any = "@str"
    kind: Any = "@type"
    below: Any = "@issubclass"
    everything: Any = "@everything"
    clean: Any = "@clean"
    if below(kind(error), exiting):
        code = error.code
        if code is None:
            return 0
        if kind(code) is whole or code is True or code is False:
            return code & 0xFF  # type: ignore[no-any-return]
        system.stderr.write(text(code) + "\n")
        return 1
    clean(error)
    try:
        system.excepthook(kind(error), error, error.__traceback__)
    except everything:
        system.__excepthook__(kind(error), error, error.__traceback__)
    return 1


def clean(error: Any) -> None:
    """Take the guard's frames out of a traceback, and out of what it came from."""
    is_ours: Any = "@is_ours"
    limit = 20
    while error is not None and limit:
        limit -= 1
        trace = error.__traceback__
        while trace is not None and is_ours(trace.tb_frame):
            trace = trace.tb_next
        error.__traceback__ = trace
        while trace is not None:
            after = trace.tb_next
            while after is not None and is_ours(after.tb_frame):
                after = after.tb_next
            trace.tb_next = after
            trace = after
        error = error.__cause__ or error.__context__


def finish(status: int) -> int:
    """What an ordinary exit does, short of taking the interpreter apart: threads, exit functions, buffers."""
    system: Any = "@sys"
    run_exit_functions: Any = "@atexit"
    everything: Any = "@everything"
    open_files: Any = "@open_files"
    threading = system.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
    except everything as error:
        system.__excepthook__(error.__class__, error, error.__traceback__)
    run_exit_functions()
    for stream in (system.stdout, system.stderr):
        try:
            if stream is not None:
                stream.flush()
        except everything:
            status = status or 1
    for file, flush in open_files():
        try:
            flush(file)
        except everything:
            continue
    return status


def open_files() -> Any:
    """Files with buffers that finalisers would have written out, and what writes each."""
    get_objects: Any = "@get_objects"
    kind_of: Any = "@type"
    kinds: Any = "@kinds"
    everything: Any = "@everything"
    found = []
    try:
        for thing in get_objects():
            for kind, flush in kinds:
                if kind_of(thing) is kind:
                    found.append((thing, flush))
    except everything:
        found = []
    # Text before the bytes beneath it.
    found.reverse()
    return found


def make_launch(source: bytes, path: str, is_ours: Any, bless: Any) -> Any:
    """The launcher, baked before the program's first byte."""
    import _io
    import atexit
    import gc
    import os

    everything = BaseException
    cleaner = bake(clean, is_ours=is_ours)
    show = bake(
        shown, exiting=SystemExit, whole=int, sys=sys, str=str, type=type, issubclass=issubclass, clean=cleaner,
        everything=everything,
    )  # fmt: skip
    kinds = tuple((kind, kind.flush) for kind in (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom))
    files = bake(open_files, TRUSTED, get_objects=gc.get_objects, type=type, kinds=kinds, everything=everything)
    end = bake(finish, sys=sys, atexit=atexit._run_exitfuncs, everything=everything, open_files=files)
    running = bake(
        run_program, TRUSTED, exec=exec, compile=compile, bless=bless, type=type, dict=dict, source=source, path=path
    )
    return bake(launch, run_program=running, finish=end, shown=show, leave=os._exit, everything=everything)
