"""The system call filter: a classic BPF program built here, loaded by bubblewrap and by our own launcher.

A deny list, because general programs must run: what is refused reaches into other processes, into kernel subsystems
with a history of holes, or out of the sandbox's namespaces. Addresses families are an allow-list, because
some of them (AF_VSOCK) are not confined by a network namespace. Rules, in this order:

- a foreign architecture ends the process; x86's x32 calls and numbers newer than this table are ENOSYS;
- `DENIED` is EPERM; `ABSENT` is ENOSYS, so that callers fall back (io_uring, clone3 whose flags
  cannot be read, io_setup whose queues are taken from one number for the whole host);
- `socket` of a family not allowed is EAFNOSUPPORT, as on a kernel built without it;
- `clone` with a namespace flag, terminal input injection, odd personalities and limits of other processes are EPERM:
  a limit of its processor time kills even the first process of a sandbox, and nobody is left to say how it ended.
"""

from __future__ import annotations

import errno
import hashlib
import platform
import socket
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from securebench.errors import SandboxUnavailable
from securebench.sandboxes.base import Network

_LD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JEQ = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JGE = 0x35
_JSET = 0x45
_RET = 0x06

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data; both architectures are little-endian

_SIGKILL = 9
_X32_BIT = 0x40000000
_NEWEST_CALL = 470
_CLONE_NEW = 0x7E020080  # every CLONE_NEW* flag, time namespace included
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)  # plain, 32-bit, old uname, both, "tell me"


@dataclass(frozen=True, slots=True)
class Architecture:
    """One machine's audit number and the numbers of the calls this filter talks about."""

    audit: int
    calls: dict[str, int]


# Calls that have the same number everywhere, because they were added after the tables were unified.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447,
    "set_mempolicy_home_node": 450, "statmount": 457, "listmount": 458, "open_tree_attr": 467,
}  # fmt: skip

_X86_64 = Architecture(
    0xC000003E,
    _COMMON | {
        "ioctl": 16, "io_setup": 206, "socket": 41, "socketpair": 53, "clone": 56, "personality": 135, "shmget": 29,
        "memfd_create": 319, "prlimit64": 302, "kill": 62, "tkill": 200, "tgkill": 234,
        "ptrace": 101, "syslog": 103, "uselib": 134, "ustat": 136, "sysfs": 139, "vhangup": 153,
        "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "adjtimex": 159, "chroot": 161, "acct": 163,
        "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
        "iopl": 172, "ioperm": 173, "create_module": 174, "init_module": 175, "delete_module": 176,
        "get_kernel_syms": 177, "query_module": 178, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212,
        "clock_settime": 227, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "kexec_load": 246,
        "add_key": 248, "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272, "move_pages": 279,
        "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
        "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    },
)  # fmt: skip

_AARCH64 = Architecture(
    0xC00000B7,
    _COMMON | {
        "ioctl": 29, "io_setup": 0, "socket": 198, "socketpair": 199, "clone": 220, "personality": 92, "shmget": 194,
        "memfd_create": 279, "prlimit64": 261, "kill": 129, "tkill": 130, "tgkill": 131,
        "ptrace": 117, "syslog": 116, "lookup_dcookie": 18, "umount2": 39, "mount": 40,
        "pivot_root": 41, "nfsservctl": 42, "chroot": 51, "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97,
        "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "reboot": 142,
        "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
        "swapoff": 225, "mbind": 235, "get_mempolicy": 236, "set_mempolicy": 237, "migrate_pages": 238,
        "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280, "userfaultfd": 282,
        "kexec_file_load": 294,
    },
)  # fmt: skip

ARCHITECTURES = {"x86_64": _X86_64, "aarch64": _AARCH64}

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "io_setup")
UNACCOUNTED = ("memfd_create", "shmget")
"""Memory that no resource limit counts: refused where no control group counts it either."""

DENIED = (
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
    # kernel subsystems a program under test has no business with
    "perf_event_open", "bpf", "userfaultfd", "add_key", "request_key", "keyctl", "memfd_secret", "fanotify_init",
    "syslog", "_sysctl", "quotactl", "quotactl_fd", "lookup_dcookie", "nfsservctl", "uselib", "ustat", "sysfs",
    # NUMA placement
    "mbind", "set_mempolicy", "get_mempolicy", "migrate_pages", "move_pages", "set_mempolicy_home_node",
    # the machine
    "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module", "kexec_load",
    "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "settimeofday", "clock_settime", "adjtimex",
    "clock_adjtime", "iopl", "ioperm", "modify_ldt", "vhangup",
    # namespaces and mounts
    "mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "open_tree", "open_tree_attr", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "name_to_handle_at",
    "open_by_handle_at",
)  # fmt: skip

_FOR_SERVERS = ("mount",)

_FAMILIES = {
    Network.NONE: (socket.AF_UNIX,),
    Network.LOOPBACK: (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6),
    # No AF_UNIX: abstract sockets belong to a network namespace, and this one is the host's.
    Network.UNSAFE_HOST: (socket.AF_INET, socket.AF_INET6),
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled filter, as both bubblewrap and prctl take it."""

    program: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.program).hexdigest()


@cache
def build_filter(network: Network, *, deny_unaccounted: bool, machine: str = "") -> Filter:
    """The filter for one kind of sandbox. Raises SandboxUnavailable on a machine without a table."""
    calls, absent = _table(machine), ABSENT + (UNACCOUNTED if deny_unaccounted else ())
    return Filter(_assemble(calls, _rules(calls.calls, network, DENIED, absent) + _namespace_rules(calls.calls)))


@cache
def build_server_filters(network: Network, *, deny_unaccounted: bool, machine: str = "") -> tuple[Filter, Filter]:
    """For a fork server of ours, and for the processes it makes, which inherit the first: together they refuse what
    `build_filter` refuses. The server itself may make namespaces and mount in them."""
    calls = _table(machine)
    denied = tuple(name for name in DENIED if name not in _FOR_SERVERS)
    missing = _refuse((calls.calls[name] for name in (UNACCOUNTED if deny_unaccounted else ())), errno.ENOSYS)
    rest = _refuse((calls.calls[name] for name in _FOR_SERVERS), errno.EPERM) + _namespace_rules(calls.calls)
    rest += _first_process_rules(calls.calls)
    return (
        Filter(_assemble(calls, _rules(calls.calls, network, denied, ABSENT))),
        Filter(_assemble(calls, missing + rest)),
    )


def _table(machine: str) -> Architecture:
    name = machine or platform.machine()
    if name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise SandboxUnavailable(
            f"no system call table for {name!r}", f"Run on {known}, or add the numbers to {__name__}."
        )
    return ARCHITECTURES[name]


def _assemble(arch: Architecture, rules: list[bytes]) -> bytes:
    code = [
        _op(_LD_WORD, _ARCH),
        _op(_JEQ, arch.audit, 1, 0),
        _op(_RET, _KILL_PROCESS),
        _op(_LD_WORD, _NR),
        # x32 numbers have a high bit, so this also catches them.
        _op(_JGE, _NEWEST_CALL + 1, 0, 1),
        _op(_RET, _ERRNO | errno.ENOSYS),
    ]
    return b"".join([*code, *rules, _op(_RET, _ALLOW)])


def _rules(calls: Mapping[str, int], network: Network, denied: tuple[str, ...], absent: tuple[str, ...]) -> list[bytes]:
    code = _refuse((calls[name] for name in denied if name in calls), errno.EPERM)
    code += _refuse((calls[name] for name in absent), errno.ENOSYS)
    code += _only(calls["socket"], 0, _FAMILIES[network], errno.EAFNOSUPPORT)
    code += _only(calls["socketpair"], 0, (socket.AF_UNIX,), errno.EAFNOSUPPORT)
    code += _only(calls["personality"], 0, _PERSONALITIES, errno.EPERM)
    code += _only(calls["prlimit64"], 0, (0,), errno.EPERM)
    code += _on_call(calls["ioctl"], 1, [*_refuse((_TIOCSTI, _TIOCLINUX), errno.EPERM), _op(_RET, _ALLOW)])
    return code


def _namespace_rules(calls: Mapping[str, int]) -> list[bytes]:
    new = [_op(_JSET, _CLONE_NEW, 0, 1), _op(_RET, _ERRNO | errno.EPERM), _op(_RET, _ALLOW)]
    return _on_call(calls["clone"], 0, new)


def _first_process_rules(calls: Mapping[str, int]) -> list[bytes]:
    """A process that kills itself ends, also where it is the first of its namespace, to which the kernel would not
    deliver that."""
    code: list[bytes] = []
    for name, signal_at in (("kill", 1), ("tkill", 1), ("tgkill", 2)):
        kills = [_op(_LD_WORD, _ARGS + 8 * signal_at), _op(_JEQ, _SIGKILL, 0, 1), _op(_RET, _KILL_PROCESS)]
        code += _on_call(calls[name], 0, [_op(_JEQ, 1, 0, len(kills)), *kills, _op(_RET, _ALLOW)])
    return code


def _op(code: int, k: int, jt: int = 0, jf: int = 0) -> bytes:
    return struct.pack("<HBBI", code, jt, jf, k)


def _refuse(values: Iterable[int], error: int) -> list[bytes]:
    """Return `error` when the loaded word is one of `values`, else fall through."""
    return [op for value in values for op in (_op(_JEQ, value, 0, 1), _op(_RET, _ERRNO | error))]


def _on_call(number: int, argument: int, body: list[bytes]) -> list[bytes]:
    """Run `body`, which always returns, with the low word of `argument` when the loaded call is `number`.

    The kernel itself reads only the low 32 bits of these arguments, so nothing can hide in the high ones.
    """
    load = _op(_LD_WORD, _ARGS + 8 * argument)
    return [_op(_JEQ, number, 0, len(body) + 1), load, *body]


def _only(number: int, argument: int, allowed: Iterable[int], error: int) -> list[bytes]:
    body = [op for value in allowed for op in (_op(_JEQ, value, 0, 1), _op(_RET, _ALLOW))]
    return _on_call(number, argument, [*body, _op(_RET, _ERRNO | error)])
