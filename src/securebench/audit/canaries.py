"""The table of canaries: what is tried, and which layer has to stop it by itself.

The programs that try are in `programs/`; they name each attempt as here. A name that is missing there, or there and
not here, fails the audit. `docs/safety.md` is made from the same table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

SEAL, BACKEND = "seal", "backend"


@dataclass(frozen=True, slots=True)
class Promise:
    """One guarantee of the safety document, with the canaries that show it.

    `guard` canaries must raise the guard's own error under `strict`. `kernel` canaries must fail with the guard left
    out; for each, the layers that have to stop it alone."""

    name: str
    text: str
    guard: tuple[str, ...] = ()
    kernel: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))


def _by(layers: str, *names: str) -> dict[str, frozenset[str]]:
    return dict.fromkeys(names, frozenset(layers.split()))


# fmt: off
PROMISES: tuple[Promise, ...] = (
    Promise(
        "dynamic code",
        "eval, exec and compile called by the program raise, as does making code or function objects",
        guard=(
            "eval",
            "exec",
            "compile",
            "eval-by-map",
            "function-type",
            "code-replace",
            "code-assigned",
            "timeit",
            "codeop",
            "runpy",
            "string-annotation",
            "dataclass-field",
            "written-module",
            "zip-module",
        ),
    ),
    Promise(
        "banned modules",
        "ctypes, pickle, marshal and their C twins cannot be had by any route",
        guard=(
            "import-ctypes",
            "import-_ctypes",
            "import-pickle",
            "import-_pickle",
            "import-marshal",
            "import-shelve",
            "import-multiprocessing",
            "import-_posixshmem",
            "create-builtin",
            "importlib-pickle",
            "spec-pickle",
            "modules-marshal",
            "loader-marshal",
        ),
    ),
    Promise("reload", "no loaded module is run again", guard=("reload", "reload-by-loader")),
    Promise(
        "processes",
        "no program is started, no process is copied or replaced",
        guard=(
            "os.system",
            "os.popen",
            "subprocess",
            "fork",
            "forkpty",
            "execv",
            "posix_spawn",
            "spawnv",
            "pty.spawn",
            "fork_exec",
        ),
        kernel={
            **_by("seal", "fork", "clone", "execve", "execveat", "posix_spawn"),
            **_by("seal backend", "clone3", "unshare", "clone-newuser", "setns"),
        },
    ),
    Promise(
        "files",
        "nothing outside the work directory is opened, changed, linked, removed or listed",
        guard=(
            "open-read",
            "open-write",
            "os.open",
            "io.FileIO",
            "remove",
            "rmdir",
            "mkdir",
            "chmod",
            "chown",
            "utime",
            "truncate",
            "rename",
            "link",
            "symlink",
            "chdir",
            "listdir",
            "scandir",
            "sqlite",
            "mkfifo",
            "mknod",
            "setxattr",
            "symlink-read",
        ),
        kernel={
            **_by("seal backend", "read-outside", "write-outside", "create-outside", "remove-outside", "list-outside"),
            **_by("seal", "write-tmp"),
            **_by(
                "backend",
                "stat-outside",
                "interpreter-read-only",
                "root-directory-read-only",
                "host-directories",
                "environment-of-parent",
            ),
            **_by("seal backend", "mount", "chroot", "open-tree"),
        },
    ),
    Promise(
        "network",
        "no socket of any kind outside the process, no name is looked up",
        guard=("socket", "bind", "connect", "sendto", "getaddrinfo", "gethostbyname", "c-socket"),
        kernel={
            **_by("seal backend", "socket-inet", "socket-inet6", "socket-netlink", "socket-vsock", "socket-packet"),
            **_by("seal", "socket-unix"),
            **_by("backend", "interfaces"),
            **_by("seal backend", "connect-outside", "io_uring"),
        },
    ),
    Promise(
        "signals and other processes",
        "no other process is seen, signalled, traced or read",
        guard=("kill", "killpg", "pidfd_send_signal"),
        kernel={
            **_by("seal backend", "kill-outside", "ptrace", "process_vm_readv", "pidfd_getfd", "kcmp"),
            **_by("seal", "kill-nobody"),
            **_by("backend", "see-processes"),
        },
    ),
    Promise(
        "kernel surface",
        "no keyring, bpf, userfaultfd, performance events or handles",
        kernel=_by("seal backend", "keyctl", "add_key", "bpf", "userfaultfd", "perf_event_open", "name_to_handle_at"),
    ),
    Promise(
        "the guard",
        "tracing, audit hooks, the garbage collector and foreign code give no way to it; its files are read-only",
        guard=(
            "settrace",
            "setprofile",
            "addaudithook",
            "gc.get_objects",
            "gc.get_referrers",
            "gc.get_referents",
            "current_frames",
            "guard-files",
        ),
    ),
    Promise(
        "amounts",
        "memory, processor and wall time, processes, threads, open files, file size, disk and output have hard limits",
        guard=("setrlimit", "prlimit"),
        kernel={
            **_by("seal backend", "open-files", "file-size", "core-size"),
            **_by(
                "backend",
                "disk",
                "threads",
                "no-new-privileges",
                "capabilities",
                "not-root",
                "descriptors",
                "variables",
            ),
            **_by("seal", "change-limit"),
        },
    ),
)
# fmt: on

GUARD_CANARIES: tuple[str, ...] = tuple(name for promise in PROMISES for name in promise.guard)
KERNEL_CANARIES: Mapping[str, frozenset[str]] = {
    name: layers for promise in PROMISES for name, layers in promise.kernel.items()
}
LIMITS = ("memory", "cpu", "wall", "output")
"""Limits that end the program, so that each needs a child of its own."""
