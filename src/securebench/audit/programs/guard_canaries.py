# mypy: ignore-errors
# ruff: noqa
"""Runs under the guard and tries, harmlessly, everything it has to refuse; prints how each attempt ended.

Our own program, run before any stranger's: what it prints can be believed. `guard` means that the guard's own error
was raised, which is a RuntimeError that names what would allow it. Everything else is told as it was."""

import importlib
import importlib.util
import json
import os
import sys
import types

OUTSIDE = sys.argv[1]  # a directory of the audit's, outside the root; nothing in it matters
HELD = "-- the wall held without a word"
FILE, NEW = OUTSIDE + "/file", OUTSIDE + "/new"


def plain():
    return 1


def _code_assigned():
    def other():
        return 2

    def target():
        return 1

    target.__code__ = other.__code__


def _annotation():
    import typing

    def function(a):
        return a

    function.__annotations__ = {"a": "[1 for _ in (0,)]"}
    typing.get_type_hints(function)


def _dataclass():
    import dataclasses

    class Named:
        pass

    Named.__annotations__ = {"__class__,print(1)": int}
    dataclasses.dataclass(init=False, repr=False)(Named)


def _not_found(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        raise RuntimeError(HELD) from None


def _written():
    with open("written_by_canary.py", "w") as file:
        file.write("x = 1\n")
    sys.path.insert(0, os.getcwd())
    _not_found("written_by_canary")


def _zipped():
    import zipfile

    with zipfile.ZipFile("canary.zip", "w") as archive:
        archive.writestr("zipped_by_canary.py", "x = 1\n")
    sys.path.insert(0, os.getcwd() + "/canary.zip")
    _not_found("zipped_by_canary")


def _runpy():
    import runpy

    with open("run_by_canary.py", "w") as file:
        file.write("x = 1\n")
    runpy.run_path("run_by_canary.py")


def _spec():
    spec = importlib.util.find_spec("pickle")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _loader():
    from importlib.machinery import BuiltinImporter

    spec = BuiltinImporter.find_spec("marshal")
    BuiltinImporter.create_module(spec).loads


def _marshal_in_modules():
    if "marshal" not in sys.modules:
        raise RuntimeError(HELD)
    sys.modules["marshal"].loads(b"N")


def _imp():
    import importlib.machinery

    import _imp

    _imp.create_builtin(importlib.machinery.ModuleSpec("marshal", None, origin="built-in"))


def _hooked():
    """A refused hook is left out without an error; what counts is whether it hears anything."""
    heard = []
    sys.addaudithook(lambda event, args: heard.append(event))
    sys.audit("securebench.canary")
    if not heard:
        raise RuntimeError(HELD)


def _again():
    json.__spec__.loader.exec_module(json)


def _pair(act):
    def attempt():
        import _socket

        ends = _socket.socketpair()
        act(ends[0])

    return attempt


def _linked():
    os.symlink(FILE, "link_by_canary")
    open("link_by_canary").close()


def _fork():
    if os.fork() == 0:
        os._exit(0)


def _forkpty():
    if os.forkpty()[0] == 0:
        os._exit(0)


def _fork_exec():
    # Too few arguments: where nothing is in the way, that is a TypeError and starts nothing.
    import _posixsubprocess

    _posixsubprocess.fork_exec()


def _guard_files():
    """The guard's own files cannot be written. Only the guard's bootstrap stands on our command line."""
    place = next(word for word in sys.orig_argv if word.endswith("/bootstrap.py"))
    open(place, "a").close()


def _timeit():
    import timeit

    timeit.timeit("list()", number=1)


def _codeop():
    import codeop

    codeop.compile_command("1")


ATTEMPTS = {
    "eval": lambda: eval("1"),
    "exec": lambda: exec("1"),
    "compile": lambda: compile("1", "x", "eval"),
    "eval-by-map": lambda: list(map(eval, ["1"])),
    "function-type": lambda: types.FunctionType(plain.__code__, {}),
    "code-replace": lambda: plain.__code__.replace(co_name="x"),
    "code-assigned": _code_assigned,
    "timeit": _timeit,
    "codeop": _codeop,
    "runpy": _runpy,
    "string-annotation": _annotation,
    "dataclass-field": _dataclass,
    "written-module": _written,
    "zip-module": _zipped,
    **{
        "import-" + name: (lambda name=name: __import__(name))
        for name in (
            "ctypes",
            "_ctypes",
            "pickle",
            "_pickle",
            "marshal",
            "shelve",
            "multiprocessing",
            "_posixshmem",
        )
    },
    "create-builtin": _imp,
    "importlib-pickle": lambda: importlib.import_module("pickle"),
    "spec-pickle": _spec,
    "modules-marshal": _marshal_in_modules,
    "loader-marshal": _loader,
    "reload": lambda: importlib.reload(json),
    "reload-by-loader": _again,
    "os.system": lambda: os.system("true"),
    "os.popen": lambda: os.popen("true").close(),
    "subprocess": lambda: __import__("subprocess").Popen(["/bin/true"]).wait(),
    "fork": _fork,
    "forkpty": _forkpty,
    "execv": lambda: os.execv("/nonexistent", ["x"]),
    "posix_spawn": lambda: os.posix_spawn("/nonexistent", ["x"], {}),
    "spawnv": lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
    "pty.spawn": lambda: __import__("pty").spawn(["/bin/true"]),
    "fork_exec": _fork_exec,
    "open-read": lambda: open(FILE).close(),
    "open-write": lambda: open(NEW, "w").close(),
    "os.open": lambda: os.close(os.open(FILE, os.O_RDONLY)),
    "io.FileIO": lambda: __import__("_io").FileIO(FILE).close(),
    "remove": lambda: os.remove(NEW),
    "rmdir": lambda: os.rmdir(NEW),
    "mkdir": lambda: os.mkdir(NEW),
    "chmod": lambda: os.chmod(FILE, 0o644),
    "chown": lambda: os.chown(FILE, -1, -1),
    "utime": lambda: os.utime(FILE),
    "truncate": lambda: os.truncate(FILE, 1),
    "rename": lambda: os.rename(NEW, NEW + "er"),
    "link": lambda: os.link(FILE, NEW),
    "symlink": lambda: os.symlink("x", NEW),
    "chdir": lambda: os.chdir(OUTSIDE),
    "listdir": lambda: os.listdir(OUTSIDE),
    "scandir": lambda: os.scandir(OUTSIDE).close(),
    "sqlite": lambda: __import__("sqlite3").connect(NEW).close(),
    "mkfifo": lambda: os.mkfifo(NEW),
    "mknod": lambda: os.mknod(NEW),
    "setxattr": lambda: os.setxattr(FILE, "user.x", b"x"),
    "symlink-read": _linked,
    "socket": lambda: __import__("socket").socket().close(),
    "c-socket": lambda: __import__("_socket").socket(2, 1, 0).close(),
    "bind": _pair(lambda end: end.bind("\0securebench-canary")),
    "connect": _pair(lambda end: end.connect("\0securebench-nobody")),
    "sendto": _pair(lambda end: end.sendto(b"x", "\0securebench-nobody")),
    "getaddrinfo": lambda: __import__("_socket").getaddrinfo("127.0.0.1", 1),
    "gethostbyname": lambda: __import__("_socket").gethostbyname("127.0.0.1"),
    "kill": lambda: os.kill(os.getppid(), 0),
    "killpg": lambda: os.killpg(os.getpgrp(), 0),
    "pidfd_send_signal": lambda: __import__("signal").pidfd_send_signal(-1, 0),
    "settrace": lambda: sys.settrace(None),
    "setprofile": lambda: sys.setprofile(None),
    "addaudithook": _hooked,
    "gc.get_objects": lambda: __import__("gc").get_objects(),
    "gc.get_referrers": lambda: __import__("gc").get_referrers(plain),
    "gc.get_referents": lambda: __import__("gc").get_referents(plain),
    "current_frames": lambda: sys._current_frames(),
    "guard-files": _guard_files,
    "setrlimit": lambda: __import__("resource").setrlimit(7, __import__("resource").getrlimit(7)),
    "prlimit": lambda: __import__("resource").prlimit(0, 7),
}


def judged(attempt):
    try:
        attempt()
    except RuntimeError as error:
        text = str(error)
        return "guard" if "--" in text else "RuntimeError: " + text[:150]
    except BaseException as error:
        return type(error).__name__ + ": " + str(error)[:150]
    return "through"


def main():
    seen = {}
    for name, attempt in ATTEMPTS.items():
        seen[name] = judged(attempt)
    sys.stdout.write("\n" + json.dumps(seen) + "\n")
    sys.stdout.flush()


main()
