"""The system call filter against the sentence it was built from: any call, on either machine, in either kind of sandbox."""

from __future__ import annotations

import errno
import socket
import struct

from securebench.sandboxes import _seccomp
from securebench.sandboxes._seccomp import ABSENT, ARCHITECTURES, DENIED, UNACCOUNTED, Architecture, build_filter
from securebench.sandboxes.base import Network

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
NETWORKS = (Network.NONE, Network.LOOPBACK, Network.UNSAFE_HOST)
FAMILIES = {
    Network.NONE: {socket.AF_UNIX},
    Network.LOOPBACK: {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6},
    Network.UNSAFE_HOST: {socket.AF_INET, socket.AF_INET6},
}
NAMESPACES = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000


def seccomp(data: bytes) -> None:
    if len(data) < 23:
        return
    settings, data = data[:3], data[3:].ljust(64, b"\0")[:64]
    machine = ("x86_64", "aarch64")[settings[0] % 2]
    network, unaccounted = NETWORKS[settings[1] % 3], bool(settings[2] % 2)
    number, audit = struct.unpack_from("<II", data)
    known = list(ARCHITECTURES[machine].calls.values())
    if settings[0] & 2:  # half of all calls are of the right machine, half of those are named in the table
        audit = ARCHITECTURES[machine].audit
    if settings[0] & 4:
        number = known[number % len(known)]
    call = struct.pack("<II", number, audit) + data[8:64]
    program = build_filter(network, deny_unaccounted=unaccounted, machine=machine).program
    verdict = run(program, call)
    expected = sentence(ARCHITECTURES[machine], network, unaccounted, call)
    assert verdict == expected, (machine, network, unaccounted, call.hex(), hex(verdict), hex(expected))


def run(program: bytes, call: bytes) -> int:
    """Classic BPF as the kernel runs it: jumps go forward only, so it ends."""
    steps = [struct.unpack_from("<HBBI", program, start) for start in range(0, len(program), 8)]
    assert len(steps) <= 4096
    at, word = 0, 0
    while True:
        code, true, false, value = steps[at]
        at += 1
        if code == _seccomp._RET:
            return int(value)
        if code == _seccomp._LD_WORD:
            assert value % 4 == 0
            assert value < 64
            word = struct.unpack_from("<I", call, value)[0]
        else:
            tests = {
                _seccomp._JEQ: word == value,
                _seccomp._JGE: word >= value,
                _seccomp._JSET: bool(word & value),
            }
            at += true if tests[code] else false


def sentence(arch: Architecture, network: Network, deny_unaccounted: bool, call: bytes) -> int:
    """What the filter's own documentation says, in plain code."""
    number, audit = struct.unpack_from("<II", call)
    words = [struct.unpack_from("<I", call, 16 + 8 * place)[0] for place in range(6)]
    if audit != arch.audit:
        return KILL
    if number > 470:
        return ERRNO | errno.ENOSYS
    name = next((name for name, value in arch.calls.items() if value == number), None)
    if name in DENIED:
        return ERRNO | errno.EPERM
    if name in ABSENT or (deny_unaccounted and name in UNACCOUNTED):
        return ERRNO | errno.ENOSYS
    refused = {
        "socket": words[0] not in FAMILIES[network] and errno.EAFNOSUPPORT,
        "socketpair": words[0] != socket.AF_UNIX and errno.EAFNOSUPPORT,
        "personality": words[0] not in (0, 8, 0x20000, 0x20008, 0xFFFFFFFF) and errno.EPERM,
        "prlimit64": words[0] != 0 and errno.EPERM,
        "ioctl": words[1] in (0x5412, 0x541C) and errno.EPERM,
        "clone": bool(words[0] & NAMESPACES) and errno.EPERM,
    }
    error = refused.get(name or "", False)
    return ERRNO | error if error else ALLOW
