"""System calls that must not work inside, each with a control: with the filter off it does something else."""

from __future__ import annotations

import errno
import os
import platform

import pytest
from tests.conformance.sandbox.box import Box, outside, text

from securebench.sandboxes import _seccomp
from securebench.sandboxes._bubblewrap import direct as _direct
from securebench.sandboxes.base import Scratch

CALLS = _seccomp.ARCHITECTURES.get(platform.machine(), _seccomp.ARCHITECTURES["x86_64"]).calls
EVERYTHING_ALLOWED = _seccomp.Filter(bytes.fromhex("06000000" + "0000ff7f"))

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(256)
self_pid = os.getpid()
result = libc.syscall({number}, {arguments})
print(0 if result >= 0 else ctypes.get_errno(), flush=True)
os._exit(0)
"""

# Name, arguments, the errno inside. Arguments are chosen so that without the filter the call gets further.
FILTERED = [
    ("ptrace", "0, 0, 0, 0", errno.EPERM),  # PTRACE_TRACEME
    ("process_vm_readv", "self_pid, 0, 0, 0, 0, 0", errno.EPERM),
    ("process_vm_writev", "self_pid, 0, 0, 0, 0, 0", errno.EPERM),
    ("kcmp", "self_pid, self_pid, 2, 0, 0", errno.EPERM),
    ("keyctl", "0, -3, 1", errno.EPERM),  # KEYCTL_GET_KEYRING_ID of the session keyring
    ("add_key", "b'user', b'name', b'value', 5, -3", errno.EPERM),
    ("request_key", "b'user', b'name', 0, 0", errno.EPERM),
    ("userfaultfd", "1", errno.EPERM),
    ("io_uring_setup", "1, 0", errno.ENOSYS),
    ("clone3", "0, 0", errno.ENOSYS),
    ("memfd_secret", "0", errno.EPERM),
    ("set_mempolicy", "0, 0, 0", errno.EPERM),
    ("name_to_handle_at", "-100, b'/', buffer, buffer, 0", errno.EPERM),
    ("personality", "0x0040000", errno.EPERM),
    ("ioctl", "0, 0x5412, b'x'", errno.EPERM),  # TIOCSTI
    ("ioctl", "0, 0x541c, b'x'", errno.EPERM),  # TIOCLINUX
    ("ioctl", "0, 0x100005412, b'x'", errno.EPERM),  # the same, hidden behind a high bit the kernel ignores
]


@pytest.mark.parametrize("name,arguments,expected", FILTERED, ids=[f"{row[0]}({row[1]})" for row in FILTERED])
def test_call_is_refused_and_gets_further_without_the_filter(
    bubblewrap: Box, monkeypatch: pytest.MonkeyPatch, name: str, arguments: str, expected: int
) -> None:
    program = CALL.format(number=CALLS[name], arguments=arguments)
    assert int(text(bubblewrap.py(program))) == expected
    assert int(text(bubblewrap.py(program, mounts=(Scratch("/work"),)))) == expected
    monkeypatch.setattr(_direct, "build_filter", lambda *_, **__: EVERYTHING_ALLOWED)
    assert int(text(bubblewrap.py(program))) != expected


# Refused by the filter and by the lack of capabilities: the control is a plain process of root's.
PRIVILEGED = [
    ("unshare", "0x10000000"),  # user namespace
    ("unshare", "0x40000000"),  # network namespace
    ("clone", "0x10000011, 0, 0, 0, 0"),  # user namespace
    ("setns", "0, 0"),
    ("mount", "b'none', b'/tmp', b'tmpfs', 0, 0"),
    ("umount2", "b'/proc/1', 2"),
    ("pivot_root", "b'/', b'/tmp'"),
    ("chroot", "b'/tmp'"),
    ("open_tree", "-100, b'/', 1"),
    ("fsopen", "b'tmpfs', 0"),
    ("bpf", "0, buffer, 72"),
    ("perf_event_open", "buffer, 0, -1, -1, 0"),
    ("open_by_handle_at", "-100, buffer, 0"),
    ("init_module", "buffer, 10, b''"),
    ("kexec_load", "0, 0, 0, 0"),
    ("reboot", "0, 0, 0, 0"),
    ("swapon", "b'/tmp/x', 0"),
    ("settimeofday", "0, buffer"),
    ("clock_settime", "0, 0"),
    ("syslog", "3, buffer, 255"),
    ("acct", "0"),
    ("quotactl", "0, 0, 0, 0"),
    ("fanotify_init", "0, 0"),
]


@pytest.mark.parametrize("name,arguments", PRIVILEGED, ids=[f"{row[0]}({row[1]})" for row in PRIVILEGED])
def test_privileged_call_is_refused(box: Box, name: str, arguments: str) -> None:
    assert int(text(box.py(CALL.format(number=CALLS[name], arguments=arguments)))) in {errno.EPERM, errno.ENOSYS}


@pytest.mark.skipif(os.getuid() != 0, reason="the control needs root")
@pytest.mark.parametrize(
    "name,arguments", [("unshare", "0x40000000"), ("chroot", "b'/tmp'"), ("fsopen", "b'tmpfs', 0")]
)
def test_privileged_call_works_outside(name: str, arguments: str) -> None:
    assert int(outside(CALL.format(number=CALLS[name], arguments=arguments))) == 0


def test_user_namespace_is_refused_by_bubblewrap_too(bubblewrap: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second wall behind the filter: with the filter off, and then with both off."""
    program = CALL.format(number=CALLS["unshare"], arguments="0x10000000")
    monkeypatch.setattr(_direct, "build_filter", lambda *_, **__: EVERYTHING_ALLOWED)
    assert int(text(bubblewrap.py(program))) == errno.ENOSPC
    arguments = _direct.namespace_args
    monkeypatch.setattr(_direct, "namespace_args", lambda **_: arguments(disable_userns=False))
    assert int(text(bubblewrap.py(program))) == 0


def test_memory_of_the_first_process_is_out_of_reach_only_because_it_is_hidden(
    bubblewrap: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = "open('/proc/1/mem', 'rb'); print('taken')"
    assert not bubblewrap.py(attack).ok
    build = _direct.file_system_args

    def without_hiding(*args: object) -> list[str]:
        words = build(*args)  # type: ignore[arg-type]
        at = words.index("/proc/1")
        return words[: at - 5] + words[at + 1 :]

    monkeypatch.setattr(_direct, "file_system_args", without_hiding)
    assert text(bubblewrap.py(attack)) == "taken"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="32-bit calls of x86")
def test_foreign_architecture_call_ends_the_process(bubblewrap: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """int 0x80 reaches the 32-bit table, whose numbers a filter for the 64-bit one would misread."""
    program = (
        "import ctypes, mmap\n"
        "code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "code.write(bytes.fromhex('53b814000000cd805bc3'))\n"  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
        "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())"
    )
    assert bubblewrap.py(program).signal == 31  # SIGSYS
    monkeypatch.setattr(_direct, "build_filter", lambda *_, **__: EVERYTHING_ALLOWED)
    control = bubblewrap.py(program)
    if control.signal == 11:
        pytest.skip("this kernel has no 32-bit calls")
    assert int(text(control)) == 2


def test_x32_call_is_absent(bubblewrap: Box) -> None:
    assert int(text(bubblewrap.py(CALL.format(number=0x40000000 + 39, arguments="0")))) == errno.ENOSYS


def test_setuid_program_gives_nothing(box: Box) -> None:
    assert (
        text(box.sh("for p in /bin/su /usr/bin/passwd /bin/mount; do [ -u $p ] && echo setuid; done; id -u")).split()[
            -1
        ]
        == "65534"
    )
    assert not box.sh("mount -t tmpfs none /tmp").ok
