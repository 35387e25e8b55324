"""Ways to break one wall, and the group of checks that has to notice. A wall is broken in a copy, or for one test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from securebench.audit.result import Group


@dataclass(frozen=True)
class Rewritten:
    """One text of the guard's files, replaced in a copy of them."""

    file: str
    old: str
    new: str
    group: Group = Group.GUARD


@dataclass(frozen=True)
class Patched:
    """One attribute of the running code, replaced for a test."""

    target: str
    make: Callable[[Any], Any]
    group: Group
    also: tuple[tuple[str, Callable[[Any], Any]], ...] = ()

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for target, make in ((self.target, self.make), *self.also):
            module, _, name = target.rpartition(".")
            monkeypatch.setattr(target, make(getattr(_load(module), name)))


def _load(path: str) -> Any:
    from importlib import import_module

    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def _event(name: str) -> Rewritten:
    return Rewritten("rules.py", f'"{name}",', "")


def _last_event(name: str) -> Rewritten:
    """One that stands last in its set."""
    return Rewritten("rules.py", f', "{name}"}})', "})")


def _unsealed(file: str, old: str, new: str) -> Rewritten:
    return Rewritten(file, old, new, Group.SEAL)


GUARD = {
    "os.system is not watched": _event("os.system"),
    "exec* is not watched": _event("os.exec"),
    "fork is not watched": _event("os.fork"),
    "posix_spawn is not watched": _event("os.posix_spawn"),
    "fork_exec is not replaced": Rewritten("rules.py", '("process", "_posixsubprocess", ("fork_exec",)),', ""),
    "mkfifo is not replaced": Rewritten("rules.py", '"mkfifo", ', ""),
    "sockets are not watched": _event("socket.__new__"),
    "connect is not watched": _event("socket.connect"),
    "name look-ups are not watched": _event("socket.getaddrinfo"),
    "open is not watched": _event("open"),
    "remove is not watched": _event("os.remove"),
    "chmod is not watched": _event("os.chmod"),
    "symlink is not watched": _event("os.symlink"),
    "listdir is not watched": _event("os.listdir"),
    "kill is not watched": _event("os.kill"),
    "settrace is not watched": _event("sys.settrace"),
    "foreign audit hooks are let in": _event("sys.addaudithook"),
    "the garbage collector is open": _event("gc.get_objects"),
    "setrlimit is not watched": _event("resource.setrlimit"),
    "compile is not watched": Rewritten("rules.py", 'CODE_EVENTS = frozenset({"exec", "compile",', "CODE_EVENTS = frozenset({"),
    "functions can be made by hand": Rewritten("rules.py", ', "function.__new__"})', "})"),
    "pickle is not banned": Rewritten("rules.py", '"pickle", "_pickle", "pickletools"', '"pickletools"'),
    "ctypes is not banned": Rewritten("rules.py", '"ctypes", "_ctypes", "_ctypes_test"', '"_ctypes_test"'),
    "reload is allowed": Rewritten("loader.py", 'if caller.co_filename != "<frozen importlib._bootstrap>" or', "if False and"),
    "the hook is not added": Rewritten("install.py", "sys.addaudithook(hooking)", "pass"),
    "stubs are not put in place": Rewritten("install.py", "wrap.put(stubs)", "pass"),
    "every path is inside": Rewritten("paths.py", "def may(path: Any, write: bool, follow: bool) -> bool:", "def may(path: Any, write: bool, follow: bool) -> bool:\n    return True"),
    "denials do not say what would allow them": Rewritten("hook.py", '"); " + flag + " would allow it"', '")"'),
    "nothing is reported": Rewritten("report.py", "if turn() >= most:", "if True:"),
    "no new privileges is not set": Rewritten("seal.py", 'installed.append("no_new_privs")', "pass"),
}  # fmt: skip

SEAL = {
    "programs may be executed": _unsealed("calls.py", 'PROCESS = ("execve", ', "PROCESS = ("),
    "processes may be copied": _unsealed("seccomp.py", "_op(_JSET, _CLONE_THREAD, 1, 0)", "_op(_JSET, 0xFFFFFFFF, 1, 0)"),
    "ptrace is allowed": _unsealed("calls.py", '"ptrace", "process_vm_readv", "process_vm_writev", "kcmp",', '"process_vm_readv", "process_vm_writev", "kcmp",'),
    "keyrings are allowed": _unsealed("calls.py", '"request_key", "keyctl", "memfd_secret"', '"request_key", "memfd_secret"'),
    "mounting is allowed": _unsealed("calls.py", '"setdomainname", "mount", ', '"setdomainname", '),
    "io_uring is allowed": _unsealed("calls.py", 'ABSENT = ("clone3", "io_uring_setup",', 'ABSENT = ("clone3",'),
    "clone3 is allowed": _unsealed("calls.py", 'ABSENT = ("clone3", ', "ABSENT = ("),
    "sockets are allowed": _unsealed("seccomp.py", 'if "network" in allowed else ()', "if True else ()"),
    "unix sockets are allowed": _unsealed("seccomp.py", 'if "network" in allowed else ()', 'if "network" in allowed else (_AF_UNIX,)'),
    "signals are allowed": _unsealed("seccomp.py", 'code += _when(calls["kill"], 0, _only((pid,), errno.EPERM))', "pass"),
    "there is no file wall": _unsealed("seal.py", "landlock.restrict(", "(lambda *_: None)("),
    "there is no filter": _unsealed("seal.py", "seccomp.load(", "(lambda *_: None)("),
    "limits can be raised": _unsealed("seccomp.py", 'code += _reading_limits(calls["prlimit64"])', "pass"),
}  # fmt: skip


def _without(*words: str) -> Callable[[Any], Any]:
    """A function that returns a list of words, without these."""
    return lambda real: lambda *args, **more: [word for word in real(*args, **more) if word not in words]


def _taken(*names: str) -> Callable[[Any], Any]:
    """A tuple of names without these."""
    return lambda real: tuple(name for name in real if name not in names)


def _writable(real: Any) -> Any:
    return lambda *args, **more: ["--bind" if word == "--ro-bind" else word for word in real(*args, **more)]


def _root_writable(real: Any) -> Any:
    """Without the last remount, which is that of the root directory."""
    return lambda *args, **more: real(*args, **more)[:-2]


def _with_home(real: Any) -> Any:
    return lambda *args, **more: [*real(*args, **more), "--ro-bind", "/var", "/var"]


def _roomy(real: Any) -> Any:
    """Every tmpfs a thousand times as large."""

    def made(*args: Any, **more: Any) -> list[str]:
        words = real(*args, **more)
        return [str(int(word) * 1000) if words[index - 1] == "--size" else word for index, word in enumerate(words)]

    return made


def _leaking(real: Any) -> Any:
    return lambda *args, **more: {**real(*args, **more), "SECRET_OF_THE_HOST": "x"}


def _unbounded(name: str) -> Callable[[Any], Any]:
    """A function that returns bounds by resource, without this one."""
    import resource

    number = getattr(resource, name)
    return lambda real: lambda *args, **more: {k: v for k, v in real(*args, **more).items() if k != number}


def _limit(**changed: Any) -> Callable[[Any], Any]:
    from dataclasses import replace

    return lambda real: lambda self, tmp: replace(real(self, tmp), **changed)


_JOINED = "securebench.sandboxes._bubblewrap.joined"
_SECCOMP = "securebench.sandboxes._seccomp"
_FOR_SANDBOX = "securebench.execution.request.PythonLimits.for_sandbox"
_NO_INNER = (("securebench.execution.launch.rlimits", lambda _: lambda *_: {"core": 0}),)

BACKEND = {
    "the host's network": Patched(f"{_JOINED}.namespace_args", _without("--unshare-net"), Group.BACKEND),
    "the host's processes": Patched(f"{_JOINED}.namespace_args", _without("--unshare-pid"), Group.BACKEND),
    "writable programs": Patched(f"{_JOINED}.file_system_args", _writable, Group.BACKEND),
    "a directory of the host's": Patched(f"{_JOINED}.file_system_args", _with_home, Group.BACKEND),
    "a writable root directory": Patched(f"{_JOINED}.file_system_args", _root_writable, Group.BACKEND),
    "disk without a size": Patched(f"{_JOINED}.file_system_args", _roomy, Group.BACKEND),
    "the host's variables": Patched(f"{_JOINED}.environment", _leaking, Group.BACKEND),
    "unshare in the filter": Patched(f"{_SECCOMP}.DENIED", _taken("unshare"), Group.BACKEND),
    "keyctl in the filter": Patched(f"{_SECCOMP}.DENIED", _taken("keyctl"), Group.BACKEND),
    "ptrace in the filter": Patched(f"{_SECCOMP}.DENIED", _taken("ptrace"), Group.BACKEND),
    "io_uring in the filter": Patched(f"{_SECCOMP}.ABSENT", _taken("io_uring_setup"), Group.BACKEND),
    "the number of open files": Patched(f"{_JOINED}._limits.bounds", _unbounded("RLIMIT_NOFILE"), Group.BACKEND),
    "the size of files": Patched(f"{_JOINED}._limits.bounds", _unbounded("RLIMIT_FSIZE"), Group.BACKEND),
    "memory": Patched(_FOR_SANDBOX, _limit(memory=8 << 30), Group.LIMITS, _NO_INNER),
    "processor time": Patched(_FOR_SANDBOX, _limit(cpu_seconds=None), Group.LIMITS, _NO_INNER),
    "wall time": Patched(_FOR_SANDBOX, _limit(wall_seconds=60.0), Group.LIMITS),
    "output": Patched(_FOR_SANDBOX, _limit(output=1 << 40), Group.LIMITS),
}
