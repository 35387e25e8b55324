# mypy: ignore-errors
# ruff: noqa
"""Runs without the guard's rules and tries, harmlessly, what the kernel has to refuse; prints how each attempt ended.

Our own program, run before any stranger's. System calls get arguments that could do nothing even if they were let
through. `blocked` is said only for an error that a wall gives and a mere mistake in the arguments does not."""

import ctypes
import errno
import json
import os
import platform
import resource
import socket
import sys
import threading

TOLD = json.loads(sys.argv[1])
OUTSIDE = TOLD["outside"]
REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS)

X86 = platform.machine() == "x86_64"
LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "clone": (56, 220),
    "execve": (59, 221),
    "execveat": (322, 281),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "chroot": (161, 51),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "name_to_handle_at": (303, 264),
}


def call(name, *args):
    """A raw system call: raises OSError with what the kernel said, also when it was let through and failed."""
    number = name if isinstance(name, int) else NUMBERS[name][0 if X86 else 1]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(arg) for arg in args))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _copy(flags):
    def attempt():
        if call("clone", flags, 0, 0, 0, 0) == 0:
            os._exit(0)

    return attempt


def _fork():
    if os.fork() == 0:
        os._exit(0)


def _socket(family, kind=socket.SOCK_STREAM):
    return lambda: os.close(call(41 if X86 else 198, family, kind, 0))


def _connect():
    with socket.create_connection(("127.0.0.1", TOLD["port"]), 2):
        pass


def _create(path):
    def attempt():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.remove(path)

    return attempt


def _expect(condition, what):
    """An observation instead of an attempt: nothing was refused, but it must be so."""
    if not condition:
        raise RuntimeError(what)
    raise PermissionError(errno.EPERM, "as it must be")


def _status(name):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(name + ":"))


def _interfaces():
    with open("/proc/net/dev") as file:
        names = [line.split(":")[0].strip() for line in file if ":" in line]
    _expect(set(names) <= {"lo"}, "interfaces: " + ", ".join(names))


def _processes():
    with open("/proc/self/cmdline", "rb") as file:
        own = file.read()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                seen = file.read()
                # A container's init repeats our own command line; the watcher's does not hold it.
                if TOLD["mark"].encode() in seen and own not in seen:
                    raise RuntimeError("saw the audit's watcher")
        except OSError:
            continue
    raise PermissionError(errno.EPERM, "as it must be")


def _parent():
    if os.getppid() == 0:
        _expect(True, "")
    with open(f"/proc/{os.getppid()}/environ", "rb") as file, open("/proc/self/environ", "rb") as own:
        # A container's init has our own variables; anything else would be another's.
        _expect(set(file.read().split(b"\0")) <= set(own.read().split(b"\0")), "the parent's environment can be read")


def _home():
    """No directory of the host's is here under its own name. Permission bits are not a wall: roots differ."""
    for path, identity in TOLD["directories"].items():
        try:
            seen = os.stat(path)
        except OSError:
            continue
        if [seen.st_dev, seen.st_ino] == identity:
            raise RuntimeError(f"{path} is the host's")
    raise PermissionError(errno.EPERM, "as it must be")


def _read_only(path):
    def attempt():
        _expect(os.statvfs(path).f_flag & os.ST_RDONLY, f"{path} is not mounted read-only")

    return attempt


def _open_files():
    held = []
    try:
        for _ in range(TOLD["open_files"] + 8):
            held.append(os.open("/", os.O_PATH))
    finally:
        for descriptor in held:
            os.close(descriptor)


def _file_size():
    with open("large_by_canary", "wb") as file:
        file.truncate(TOLD["file_size"] + 1)


def _disk():
    try:
        for number in range(TOLD["disk"] // (1 << 20) + 2):
            with open(f"filled_by_canary_{number}", "wb") as file:
                file.write(bytes(1 << 20))
    finally:
        for name in os.listdir("."):
            if name.startswith("filled_by_canary"):
                os.remove(name)


def _threads():
    go, held = threading.Event(), []
    threading.stack_size(64 * 1024)
    try:
        for _ in range(TOLD["pids"] + 4):
            thread = threading.Thread(target=go.wait, daemon=True)
            thread.start()
            held.append(thread)
    except RuntimeError as error:
        raise PermissionError(errno.EAGAIN, str(error)) from None
    finally:
        go.set()
        for thread in held:
            thread.join()


def _core():
    _expect(resource.getrlimit(resource.RLIMIT_CORE) == (0, 0), "a core file can be written")


def _change_limit():
    """To what it is already: only a wall is in the way of that."""
    resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))


def _descriptors():
    odd = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except OSError:  # the listing itself, closed by now
            continue
        # Where no descriptor can be inherited, the guard opens its report, a file in a directory of its own.
        if int(name) not in (0, 1, 2, *TOLD["descriptors"]) and not target.endswith("/report.jsonl"):
            odd.append(name + " " + target)
    _expect(not odd, "inherited descriptors: " + ", ".join(odd))


def _variables():
    known = {"AIBB_TMP", "TMPDIR", "HOME", "PATH", "LANG", "LC_CTYPE", "PWD", "SHLVL", "_", "HOSTNAME", "container"}
    _expect(set(os.environ) <= known, "variables: " + ", ".join(sorted(set(os.environ) - known)))


ATTEMPTS = {
    "fork": _fork,
    "clone": _copy(17),
    "clone-newuser": _copy(0x10000000 | 17),
    "clone3": lambda: call(435, 0, 0),
    "execve": lambda: call("execve", 0, 0, 0),
    "execveat": lambda: call("execveat", -1, 0, 0, 0, 0),
    "posix_spawn": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
    "unshare": lambda: call("unshare", 0),
    "setns": lambda: call("setns", -1, 0),
    "read-outside": lambda: open(OUTSIDE + "/file").close(),
    "write-outside": lambda: open(OUTSIDE + "/file", "a").close(),
    "create-outside": _create(OUTSIDE + "/made"),
    "remove-outside": lambda: os.remove(OUTSIDE + "/spare"),
    "list-outside": lambda: os.listdir(OUTSIDE),
    "write-tmp": _create("/tmp/securebench-canary-" + TOLD["mark"]),
    "stat-outside": lambda: os.stat(OUTSIDE + "/file"),
    "interpreter-read-only": _read_only(os.path.dirname(os.__file__)),
    "root-directory-read-only": _read_only("/"),
    "host-directories": _home,
    "environment-of-parent": _parent,
    "mount": lambda: call("mount", 0, 0, 0, 0, 0),
    "chroot": lambda: call("chroot", 0),
    "open-tree": lambda: call(428, -1, 0, 0),
    "socket-inet": _socket(2),
    "socket-inet6": _socket(10),
    "socket-netlink": _socket(16, socket.SOCK_RAW),
    "socket-vsock": _socket(40),
    "socket-packet": _socket(17, socket.SOCK_RAW),
    "socket-unix": _socket(1),
    "interfaces": _interfaces,
    "connect-outside": _connect,
    "io_uring": lambda: call(425, 0, 0),
    "kill-outside": lambda: os.kill(TOLD["watcher"], 0),
    "kill-nobody": lambda: os.kill(0x3FFFFE, 0),
    "ptrace": lambda: call("ptrace", 2, 0, 0, 0),
    "process_vm_readv": lambda: call("process_vm_readv", os.getpid(), 0, 0, 0, 0, 0),
    "pidfd_getfd": lambda: call(438, -1, 0, 0),
    "kcmp": lambda: call("kcmp", os.getpid(), os.getpid(), 0, 0, 0),
    "see-processes": _processes,
    "keyctl": lambda: call("keyctl", 0, -1, 0, 0, 0),
    "add_key": lambda: call("add_key", 0, 0, 0, 0, 0),
    "bpf": lambda: call("bpf", 0xFFFF, 0, 0),
    "userfaultfd": lambda: call("userfaultfd", -1),
    "perf_event_open": lambda: call("perf_event_open", 0, 0, 0, 0, 0),
    "name_to_handle_at": lambda: call("name_to_handle_at", -1, 0, 0, 0, 0),
    "open-files": _open_files,
    "file-size": _file_size,
    "core-size": _core,
    "disk": _disk,
    "threads": _threads,
    "change-limit": _change_limit,
    "no-new-privileges": lambda: _expect(_status("NoNewPrivs") == "1", "new privileges can be gained"),
    "capabilities": lambda: _expect(not _status("CapEff").strip("0"), "capabilities: " + _status("CapEff")),
    "not-root": lambda: _expect(os.geteuid() != 0, "runs as user 0"),
    "descriptors": _descriptors,
    "variables": _variables,
}
AMOUNTS = {
    "open-files": (errno.EMFILE,),
    "file-size": (errno.EFBIG,),
    "disk": (errno.ENOSPC,),
    "threads": (errno.EAGAIN,),
}
ELSEWHERE = (*REFUSED, errno.ENOENT, errno.EROFS, errno.ESRCH, errno.EAFNOSUPPORT, errno.ENOTDIR, errno.ENETUNREACH)
SYSTEM_CALLS = {
    "kill-nobody",
    "change-limit",
    "clone",
    "clone-newuser",
    "clone3",
    "execve",
    "execveat",
    "unshare",
    "setns",
    "mount",
    "chroot",
    "open-tree",
    "ptrace",
    "process_vm_readv",
    "pidfd_getfd",
    "kcmp",
    "keyctl",
    "add_key",
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "name_to_handle_at",
    "io_uring",
    "fork",
}


def judged(name):
    wall = REFUSED if name in SYSTEM_CALLS else AMOUNTS.get(name, ELSEWHERE)
    try:
        ATTEMPTS[name]()
    except (OSError, ValueError) as error:
        number = errno.EPERM if isinstance(error, ValueError) else error.errno
        word = errno.errorcode.get(number, str(number))
        return "blocked" if number in wall else f"{word}: {error}"[:150]
    except BaseException as error:
        return f"{type(error).__name__}: {error}"[:150]
    return "through"


def main():
    sys.stdout.write("\n" + json.dumps({name: judged(name) for name in TOLD["names"] if name in ATTEMPTS}) + "\n")
    sys.stdout.flush()


main()
