"""The system call filter of containers, in the JSON form Docker and Podman read. Pure.

The same policy as `_seccomp.py`, which bubblewrap loads, said as an allow-list: what is not named is refused with
EPERM, also calls newer than this list. It is stricter than the engines' default profile, which on many installed
versions lets through what a network namespace does not confine (AF_VSOCK, netlink) and kernel subsystems with a history
of holes (io_uring). Foreign architectures are not listed, so their calls end the process.
"""

from __future__ import annotations

import errno
import json
import socket
from functools import cache

from securebench.sandboxes._seccomp import ABSENT
from securebench.sandboxes.base import Network

_CLONE_NEW = 0x7E020000  # every CLONE_NEW* flag that clone takes in its first argument
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_FAMILIES = {
    Network.NONE: (socket.AF_UNIX,),
    Network.LOOPBACK: (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6),
}

_NAMES = """
accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer
getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid
getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1
inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_submit ioctl ioprio_get ioprio_set kill
landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr
llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create mincore mkdir mkdirat
mknod mknodat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend
mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat
openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64
preadv preadv2 process_mrelease pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat
readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq
rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list
set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid
setresuid setreuid setrlimit setsid setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack
signalfd signalfd4 splice stat statfs statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time
timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid
write writev
"""

ALLOWED = tuple(_NAMES.split())


@cache
def profile(network: Network, capabilities: frozenset[str] = frozenset()) -> bytes:
    """The filter for one kind of container, as JSON. `capabilities` without the CAP_ prefix."""
    names = ALLOWED + (("chroot",) if "SYS_CHROOT" in capabilities else ())
    rules = [
        _rule(names),
        _rule(ABSENT, error=errno.ENOSYS),  # so that callers fall back
        _rule(("clone",), _argument(0, "SCMP_CMP_MASKED_EQ", _CLONE_NEW, 0)),
        _rule(("socketpair",), _argument(0, "SCMP_CMP_EQ", socket.AF_UNIX)),
        _rule(("prlimit64",), _argument(0, "SCMP_CMP_EQ", 0)),
        *(_rule(("personality",), _argument(0, "SCMP_CMP_EQ", value)) for value in _PERSONALITIES),
        *_families(_FAMILIES[network]),
    ]
    document = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.EPERM,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    }
    return json.dumps(document, sort_keys=True).encode()


def _families(allowed: tuple[int, ...]) -> list[dict[str, object]]:
    """Every family but these is EAFNOSUPPORT. Said value by value: conditions on one argument cannot be combined."""
    last = max(allowed)
    rules = [_rule(("socket",), _argument(0, "SCMP_CMP_EQ", family)) for family in allowed]
    refused = [family for family in range(last) if family not in allowed]
    conditions = [_argument(0, "SCMP_CMP_EQ", family) for family in refused] + [_argument(0, "SCMP_CMP_GT", last)]
    return rules + [_rule(("socket",), condition, error=errno.EAFNOSUPPORT) for condition in conditions]


def _rule(names: tuple[str, ...], *arguments: dict[str, object], error: int | None = None) -> dict[str, object]:
    rule: dict[str, object] = {"names": list(names), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}
    if error is not None:
        rule |= {"action": "SCMP_ACT_ERRNO", "errnoRet": error}
    return rule


def _argument(index: int, operator: str, value: int, second: int = 0) -> dict[str, object]:
    return {"index": index, "op": operator, "value": int(value), "valueTwo": second}
