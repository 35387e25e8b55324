"""The steps between fork and exec. Standard library only; nothing of it is needed inside a sandbox.

Signals go the kernel's own way: the C library hides 32 and 33, which it uses itself, from every call of its own, so a
process that inherited them ignored could neither see nor change that.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import ctypes
import fcntl
import os
import resource

_PR_SET_SECCOMP, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 22, 23, 24, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_SIGNALS = 64
_SIG_SETMASK = 2
# rt_sigaction and rt_sigprocmask; every newer architecture has the second pair.
_CALLS = {"x86_64": (13, 14)}.get(os.uname().machine, (134, 135))
_IGNORE = (1).to_bytes(8, "little") + bytes(56)
_DEFAULT = bytes(64)

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Call = tuple[str, Any, tuple[Any, ...]]
    """What it is for, a function of the C library that answers -1 where it fails, and the arguments."""


def check(result: int, what: str) -> None:
    """Raises OSError for a call that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def make(calls: list[Call]) -> None:
    """Calls that were prepared. Raises OSError for the first that fails."""
    for what, function, arguments in calls:
        if function(*arguments) == -1:
            check(-1, what)


def prctl(option: int, value: int = 0) -> int:
    return int(libc.prctl(option, value, None, 0, 0))


def controlled(option: int, value: int, what: str) -> Call:
    """`prctl` as a prepared call."""
    return what, libc.prctl, (option, value, None, 0, 0)


def reset_signals(ignored: tuple[int, ...] = ()) -> None:
    """Every signal does what it does by default and none is blocked, whatever our ancestors left; but for `ignored`."""
    action, mask = _CALLS
    for number in range(1, _SIGNALS + 1):
        if number not in (_signal.SIGKILL, _signal.SIGSTOP):
            libc.syscall(action, number, _IGNORE if number in ignored else _DEFAULT, None, 8)
    check(libc.syscall(mask, _SIG_SETMASK, _DEFAULT, None, 8), "unblock signals")


def enter_groups(entrances: list[int]) -> None:
    """Move ourselves, alone, into the control groups whose files these are.

    A process that moves itself waits for nobody; one that is moved makes the kernel stop every fork on the host first,
    which takes it several milliseconds."""
    for fd in entrances:
        os.write(fd, b"0")
        os.close(fd)


def place(fds: list[int], numbers: list[int], fault: int) -> int:
    """Put each descriptor under its number, inherited; the new `fault`.

    Everything else closes at exec: Python makes every descriptor so, and we received ours so.
    """
    above = max(numbers) + 1
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in (*fds, fault)]
    for fd, number in zip(high, numbers, strict=False):
        os.dup2(fd, number, inheritable=True)
    return high[-1]


def limit(words: bytes) -> None:
    make(limits(words))


def limits(words: bytes) -> list[Call]:
    """Resource limits as `limits.as_bytes` writes them, never above the ceiling we have."""
    calls: list[Call] = []
    for word in words.split():
        kind, *bounds = map(int, word.split(b":"))
        ceiling = resource.getrlimit(kind)[1]
        if ceiling != resource.RLIM_INFINITY:
            bounds = [min(bound, ceiling) for bound in bounds]
        calls.append(("limit what it uses", libc.setrlimit, (kind, (ctypes.c_ulong * 2)(*bounds))))
    return calls


def become_user(uid: int) -> None:
    """Be this user and group and in no other group, for good, without any capability."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    make([_no_capabilities()])


def without_capabilities() -> list[Call]:
    """What leaves a process without any and unable to get one. Raises OSError where the kernel tells of none."""
    what = "drop capabilities"
    known = [number for number in range(64) if prctl(_PR_CAPBSET_READ, number) >= 0]
    if not known:
        check(-1, "see which capabilities there are")
    calls = [controlled(_PR_CAPBSET_DROP, number, what) for number in known]
    return [*calls, controlled(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, what), _no_capabilities()]


def _no_capabilities() -> Call:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    return "drop capabilities", libc.capset, (header, nothing)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def filtered(program: bytes) -> Call:
    """What loads this system call filter."""
    loaded = _Program(len(program) // 8, program)
    return "load the system call filter", libc.prctl, (_PR_SET_SECCOMP, 2, ctypes.byref(loaded), 0, 0)


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """Become the program, looked up in the PATH of `env`. Raises OSError; never returns otherwise."""
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)  # noqa: S606
    refusal: OSError = FileNotFoundError(2, "no such program")
    for folder in env.get(b"PATH", b"").split(b":"):
        try:
            os.execve((folder or b".") + b"/" + argv[0], argv, env)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = error
    raise refusal


def variables(words: list[bytes]) -> dict[bytes, bytes]:
    """`NAME=value` words as an environment."""
    return {name: value for name, _, value in (word.partition(b"=") for word in words)}
