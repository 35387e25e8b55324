"""The system call filter of a guarded child, as classic BPF, loaded from inside after the interpreter has started."""

from __future__ import annotations

import errno

from .calls import ABSENT, ALWAYS_DENIED, AMOUNTS, MACHINES, PROCESS, SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .libc import Libc

_LOAD, _JEQ, _JGE, _JSET, _RET = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARGS = 0, 4, 16
_NEWEST = 480
_CLONE_THREAD = 0x10000
_CLONE_NEW = 0x7E020080
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TIOCSTI, _TIOCLINUX, _TIOCSETD = 0x5412, 0x541C, 0x5423
_PRCTL_DENIED = (1, 4, 35, 0x59616D61)
"""The death signal, dumpability, the memory map, and who may trace."""
_SET_FILTER = 1


def build(machine: str, allowed: frozenset[str], pid: int) -> bytes:
    """The program for one run: `allowed` are the items this run may use. Raises OSError for an unknown machine."""
    if machine not in MACHINES:
        raise OSError(f"no system call table for {machine}")
    audit, calls, _ = MACHINES[machine]
    denied = list(ALWAYS_DENIED)
    denied += [] if "process" in allowed else PROCESS
    denied += [] if "signals" in allowed else SIGNALS
    denied += [] if "amounts" in allowed else AMOUNTS
    code = [
        _op(_LOAD, _ARCH), _op(_JEQ, audit, 1, 0), _op(_RET, _KILL), _op(_LOAD, _NR),
        # x32 numbers have a high bit, so this also catches them.
        _op(_JGE, _NEWEST + 1, 0, 1), _op(_RET, _ERRNO | errno.ENOSYS),
    ]  # fmt: skip
    code += _refuse([calls[name] for name in denied if name in calls], errno.EPERM)
    code += _refuse([calls[name] for name in ABSENT], errno.ENOSYS)
    code += _when(calls["ioctl"], 1, _refuse([_TIOCSTI, _TIOCLINUX, _TIOCSETD], errno.EPERM))
    code += _when(calls["prctl"], 0, _refuse(_PRCTL_DENIED, errno.EPERM))
    code += _when(calls["clone"], 0, _clone(process="process" in allowed))
    families = (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK) if "network" in allowed else ()
    code += _when(calls["socket"], 0, _only(families, errno.EACCES))
    code += _when(calls["socketpair"], 0, _only((_AF_UNIX,), errno.EACCES))
    if "signals" not in allowed:
        # By the number this process has here; in another PID namespace nobody else has it.
        code += _when(calls["kill"], 0, _only((pid,), errno.EPERM))
        code += _when(calls["tgkill"], 0, _only((pid,), errno.EPERM))
    if "amounts" not in allowed:
        code += _reading_limits(calls["prlimit64"])
    code.append(_op(_RET, _ALLOW))
    return b"".join(code)


def load(libc: Libc, machine: str, program: bytes) -> None:
    """Put the filter in force for good. Raises OSError."""
    address = libc.memory(program)
    # struct sock_fprog: a short, padding to the pointer's alignment, the pointer.
    fprog = libc.memory((len(program) // 8).to_bytes(8, "little") + address.to_bytes(8, "little"))
    libc.call(MACHINES[machine][2], _SET_FILTER, 0, fprog)


def _clone(*, process: bool) -> list[bytes]:
    """Threads, and with `process` ordinary children; never a namespace."""
    if process:
        return [_op(_JSET, _CLONE_NEW, 0, 1), _op(_RET, _ERRNO | errno.EPERM)]
    return [
        _op(_JSET, _CLONE_NEW, 1, 0), _op(_JSET, _CLONE_THREAD, 1, 0), _op(_RET, _ERRNO | errno.EPERM)
    ]  # fmt: skip


def _reading_limits(number: int) -> list[bytes]:
    """prlimit64 may read limits (no new ones given) and nothing else."""
    body = [
        _op(_LOAD, _ARGS + 16), _op(_JEQ, 0, 0, 3), _op(_LOAD, _ARGS + 20), _op(_JEQ, 0, 0, 1), _op(_RET, _ALLOW),
        _op(_RET, _ERRNO | errno.EPERM),
    ]  # fmt: skip
    return [_op(_JEQ, number, 0, len(body)), *body]


def _when(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """Run `body` on the low word of `argument` when the loaded call is `number`; past it, the call is allowed.

    The kernel itself reads only the low 32 bits of these arguments, so nothing can hide in the high ones.
    """
    inner = [_op(_LOAD, _ARGS + 8 * argument), *body, _op(_RET, _ALLOW)]
    return [_op(_JEQ, number, 0, len(inner)), *inner]


def _only(values: tuple[int, ...], error: int) -> list[bytes]:
    accepted = [op for value in values for op in (_op(_JEQ, value, 0, 1), _op(_RET, _ALLOW))]
    return [*accepted, _op(_RET, _ERRNO | error)]


def _refuse(values: list[int] | tuple[int, ...], error: int) -> list[bytes]:
    return [op for value in values for op in (_op(_JEQ, value, 0, 1), _op(_RET, _ERRNO | error))]


def _op(code: int, k: int, jt: int = 0, jf: int = 0) -> bytes:
    return code.to_bytes(2, "little") + bytes((jt, jf)) + k.to_bytes(4, "little")
