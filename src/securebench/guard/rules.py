"""What is blocked, and what makes it true: the table that the guard, the audit and docs/safety.md share."""

from __future__ import annotations

EXIT_PARAMETERS = 120
EXIT_GUARD = 121
REPORT_LINES = 200


class Item:
    """One thing a program may not do: what it is, what enforces it, and what allows it."""

    __slots__ = ("description", "enforced_by", "flag", "name")

    def __init__(self, name: str, description: str, enforced_by: tuple[str, ...], flag: str) -> None:
        self.name = name
        self.description = description
        self.enforced_by = enforced_by
        self.flag = flag


_POLICY = "--policy standard"


def _table(*items: Item) -> dict[str, Item]:
    return {item.name: item for item in items}


ITEMS = _table(
    Item(
        "dynamic_code",
        "eval, exec and compile called by the program, code and function objects made by hand, code that the standard "
        "library would build from the program's text",
        ("guard",),
        _POLICY,
    ),
    Item(
        "imports",
        "ctypes, pickle, marshal, their C twins and other modules that reach around the interpreter; any module that "
        "is not of the standard library, of the listed site directories or of the submitted files",
        ("guard",),
        _POLICY,
    ),
    Item("reload", "importlib.reload and running a loaded module a second time", ("guard",), _POLICY),
    Item("process", "starting a program or another process in any way", ("guard", "seccomp"), "--unsafe"),
    Item(
        "files",
        "opening, changing, linking or removing a file outside the work directory",
        ("guard", "landlock", "mounts"),
        "--unsafe",
    ),
    Item("listing", "listing a directory outside the work directory", ("guard", "landlock", "mounts"), "--unsafe"),
    Item("network", "sockets of every kind, and looking names up", ("guard", "seccomp", "landlock"), "--allow-network"),
    Item("signals", "signals to another process", ("guard", "seccomp", "landlock"), "--unsafe"),
    Item(
        "tampering",
        "tracing, profiling, audit hooks, hunts through the garbage collector or other threads' frames, "
        "subinterpreters, foreign code in a function",
        ("guard",),
        _POLICY,
    ),
    Item("amounts", "raising the process's own limits", ("guard", "rlimit", "seccomp"), "--mem, --cpu or --pids"),
)

_KERNEL = ("process", "files", "listing", "network", "signals", "amounts")
POLICIES = {"strict": tuple(ITEMS), "standard": _KERNEL, "off": ()}
"""What each policy blocks; a pack's `allow` takes single items out."""

BANNED = frozenset({
    "ctypes", "_ctypes", "_ctypes_test", "cffi", "_cffi_backend",
    "pickle", "_pickle", "pickletools", "_compat_pickle", "shelve", "marshal",
    "_posixshmem", "_multiprocessing", "multiprocessing",
    "_interpreters", "_xxsubinterpreters", "_interpchannels", "_xxinterpchannels", "_interpqueues", "interpreters",
    "_tkinter", "tkinter", "turtle", "readline", "_gdbm", "_dbm", "_remote_debugging",
    "test", "idlelib", "antigravity", "_lsprof",
})  # fmt: skip
"""Modules a program may not have by any route."""

HOLLOW = frozenset({"ctypes", "pickle", "marshal", "multiprocessing", "_compat_pickle", "pickletools"})
"""Of these, what library modules import at their top without a fallback: they get a stand-in that refuses its use."""

BANNED_PREFIXES = ("_test", "_xx", "xxlimited", "xxsubtype")
"""The interpreter's own test modules run code objects and raw memory operations without any event."""

PROGRAM_ONLY = frozenset({"_posixsubprocess"})
"""Modules the standard library needs and a program does not; what is dangerous in them is replaced."""

PROCESS_EVENTS = frozenset({
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.startfile/2",
    "subprocess.Popen", "pty.spawn", "_winapi.CreateProcess", "_posixsubprocess.fork_exec", "webbrowser.open",
})  # fmt: skip
NETWORK_EVENTS = frozenset({
    "socket.__new__", "socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
    "socket.gethostbyaddr", "socket.gethostbyname", "socket.getnameinfo", "socket.getservbyname",
    "socket.getservbyport", "socket.sethostname",
})  # fmt: skip
SIGNAL_EVENTS = frozenset({"os.kill", "os.killpg", "signal.pthread_kill"})
TAMPER_EVENTS = frozenset({
    "sys.addaudithook", "sys.settrace", "sys.setprofile", "sys._current_frames", "sys._current_exceptions",
    "sys.monitoring.register_callback", "sys.remote_exec", "cpython.remote_debugger_script",
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "cpython.PyInterpreterState_New",
    "sys.activate_stack_trampoline",
})  # fmt: skip
AMOUNT_EVENTS = frozenset({"resource.setrlimit", "resource.prlimit"})
LIST_EVENTS = frozenset({"os.listdir", "os.scandir", "os.listdrives", "os.listvolumes", "os.listmounts"})
FILE_EVENTS = frozenset({
    "open", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.chflags", "os.utime", "os.truncate",
    "os.setxattr", "os.removexattr", "os.getxattr", "os.listxattr", "os.rename", "os.link", "os.symlink", "os.chdir",
    "sqlite3.connect", "sqlite3.enable_load_extension", "sqlite3.load_extension", "os.add_dll_directory",
    "_winapi.CreateFile", "_winapi.CreateJunction", "winreg.SaveKey", "winreg.LoadKey",
})  # fmt: skip
CODE_EVENTS = frozenset({"exec", "compile", "code.__new__", "function.__new__"})
IMPORT_EVENTS = frozenset({
    "import", "marshal.loads", "marshal.load", "marshal.dumps", "pickle.find_class",
    "ctypes.dlopen", "ctypes.dlsym", "ctypes.dlsym/handle", "ctypes.call_function", "ctypes.cdata", "ctypes.addressof",
    "ctypes.cdata/buffer", "ctypes.string_at", "ctypes.wstring_at", "ctypes.memoryview_at", "ctypes.PyObj_FromPtr",
    "ctypes.create_string_buffer", "ctypes.create_unicode_buffer", "ctypes.set_errno", "ctypes.get_errno",
})  # fmt: skip
ATTRIBUTE_EVENTS = frozenset({"object.__getattr__", "object.__setattr__", "object.__delattr__"})

STUBS = (
    ("process", "posix", ("unshare", "setns", "setsid", "setpgid", "setpgrp")),
    ("files", "posix", ("mkfifo", "mknod", "chroot", "memfd_create")),
    ("signals", "signal", ("pidfd_send_signal",)),
    ("signals", "_signal", ("pidfd_send_signal",)),
    ("imports", "_imp", ("create_builtin", "create_dynamic")),
    ("process", "_posixsubprocess", ("fork_exec",)),
)  # fmt: skip
"""Operations without an audit event, replaced by one that says why it is refused."""
