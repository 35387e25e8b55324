"""What hostile programs do. `HOST` says what of the host there is, `PREFIX` is empty on the real thing; `THROUGH` on
standard output says that the goal was reached."""

from __future__ import annotations

_CALLS = """
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
first = platform.machine() == "x86_64"
refused = (errno.EPERM, errno.EACCES, errno.ENOSYS)
def call(numbers, *args):
    ctypes.set_errno(0)
    number = numbers if isinstance(numbers, int) else numbers[0 if first else 1]
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(arg) for arg in args))
    return result != -1 or ctypes.get_errno() not in refused
"""
_SAY = "\nif through: print('THROUGH', through, flush=True)\n"

PRIVILEGES = (
    """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
through = [name for name, wanted in (("NoNewPrivs", 1), ("Seccomp", 2)) if int(status[name]) != wanted]
through += [name for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd") if int(status[name], 16)]
through += ["user 0"] if 0 in os.getresuid() + os.getresgid() else []
through += ["group 0"] if 0 in os.getgroups() else []
"""
    + _SAY
)

SOCKETS = (
    """
import socket
through = []
known = ["/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
         "/run/systemd/private", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0"]
for path in [HOST["socket"], *known]:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(2)
            line.connect(path)
            through.append(path)
    except OSError:
        pass
"""
    + _SAY
)

ABSTRACT = (
    """
import socket
through = []
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    try:
        with socket.socket(socket.AF_UNIX, kind) as line:
            line.settimeout(2)
            line.connect("\\0" + HOST["abstract"])
            through.append(HOST["abstract"])
    except OSError:
        pass
"""
    + _SAY
)

FILES = (
    """
import os
through = []
path = HOST["file"]
ways = [path, "/proc/self/root" + path, "/proc/self/cwd" + "/.." * 30 + path, "/" + "../" * 30 + path]
pids = filter(str.isdigit, os.listdir("/proc"))
ways += [f"/proc/{pid}/{link}{path}" for pid in pids for link in ("root", "cwd/../../..")]
for way in ways:
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
        try:
            descriptor = os.open(way, flags)
            if flags:
                os.write(descriptor, b"!")
            through.append(way)
        except OSError:
            pass
"""
    + _SAY
)

PROCESSES = (
    """
import os, signal
through = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if HOST["mark"].encode() in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0"):
            through.append(pid)
    except OSError:
        pass
try:
    if HOST["mark"].encode() in open(f"/proc/{HOST['pid']}/cmdline", "rb").read():
        os.kill(HOST["pid"], signal.SIGSTOP)
except OSError:
    pass
"""
    + _SAY
)

WRITABLE = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
    "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/rdma/release_agent",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/systemd/tasks",
    "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/hostname", "/etc/passwd", "/etc/ld.so.preload",
    "/usr/bin/python3", "/bin/sh",
)  # fmt: skip
DEVICES = (
    "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/fuse", "/dev/kvm",
    "/dev/net/tun", "/dev/vhost-net", "/dev/vsock", "/dev/loop-control", "/dev/loop0", "/dev/mapper/control",
    "/dev/uinput", "/dev/snapshot", "/dev/cpu/0/msr", "/dev/console", "/dev/autofs", "/proc/kcore", "/proc/kmsg",
)  # fmt: skip


def opens(paths: tuple[str, ...], flags: str) -> str:
    """Opens them and does nothing with them."""
    return f"""
import os
through = []
for path in {paths!r}:
    try:
        descriptor = os.open(PREFIX + path, os.{flags} | os.O_NONBLOCK)
        if path != "/proc/kcore" or os.read(descriptor, 16):
            through.append(path)
    except OSError:
        pass
{_SAY}"""


MOUNTS = (
    _CALLS
    + """
through = [name for name, made in (
    ("unshare", call((272, 97), 0)), ("setns", call((308, 268), -1, 0)), ("clone3", call(435, 0, 0)),
    ("mount", call((165, 40), 0, 0, 0, 0, 0)), ("umount", call((166, 39), 0, 0)), ("chroot", call((161, 51), 0)),
    ("pivot_root", call((155, 41), 0, 0)), ("open_tree", call(428, -1, 0, 0)), ("fsopen", call(430, 0, 0)),
    ("move_mount", call(429, -1, 0, -1, 0, 0)), ("open_by_handle_at", call((304, 265), -1, 0, 0)),
) if made]
"""
    + _SAY
)

TRACING = (
    _CALLS
    + """
through = [name for name, made in (
    ("ptrace", call((101, 117), 16, 0, 0, 0)), ("process_vm_readv", call((310, 270), os.getpid(), 0, 0, 0, 0, 0)),
    ("process_vm_writev", call((311, 271), os.getpid(), 0, 0, 0, 0, 0)), ("pidfd_getfd", call(438, -1, 0, 0)),
    ("kcmp", call((312, 272), os.getpid(), os.getpid(), 0, 0, 0)), ("process_madvise", call(440, -1, 0, 0, 0, 0)),
) if made]
"""
    + _SAY
)

INTERFACES = (
    _CALLS
    + """
through = [name for name, made in (
    ("keyctl", call((250, 219), 0, -1, 0, 0, 0)), ("add_key", call((248, 217), 0, 0, 0, 0, 0)),
    ("request_key", call((249, 218), 0, 0, 0, 0)), ("bpf", call((321, 280), -1, 0, 0)),
    ("userfaultfd", call((323, 282), -1)), ("perf_event_open", call((298, 241), 0, 0, -1, -1, 0)),
    ("io_uring_setup", call(425, 0, 0)), ("name_to_handle_at", call((303, 264), -1, 0, 0, 0, 0)),
    ("init_module", call((175, 105), 0, 0, 0)), ("kexec_load", call((246, 104), 0, 0, 0, -1)),
    ("syslog", call((103, 116), 10, 0, 0)), ("fanotify_init", call((300, 262), -1, 0)),
) if made]
"""
    + _SAY
)

QUEUES = (
    _CALLS
    + """
context = ctypes.c_ulong(0)
through = call((206, 0), 1, ctypes.addressof(context))
if through:
    call((207, 1), context.value)
"""
    + _SAY
)

LIMITS_OF_OTHERS = (
    """
import os, resource
through = []
for pid in {1, os.getppid(), HOST["pid"]} - {0, os.getpid()}:
    try:
        resource.prlimit(pid, resource.RLIMIT_CPU, resource.prlimit(pid, resource.RLIMIT_CPU))  # to what it is
        through.append(pid)
    except OSError:
        pass
"""
    + _SAY
)

DESCRIPTORS = (
    """
import os
through = []
for name in os.listdir("/proc/self/fd"):
    if int(name) > 2:
        try:
            through.append(os.readlink("/proc/self/fd/" + name))
        except OSError:
            pass
"""
    + _SAY
)

UPWARDS = (
    """
import os
through = [way for way in ("../" * 40, "/proc/self/cwd/" + "../" * 40) if os.path.exists(way + HOST["file"][1:])]
"""
    + _SAY
)

TERMINAL = (
    """
import fcntl, os, termios
through = []
for name in ("/dev/tty", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2", "/dev/console"):
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        if os.isatty(descriptor):
            through.append(name)
            fcntl.ioctl(descriptor, termios.TIOCSTI, b"!")
    except OSError:
        pass
"""
    + _SAY
)

WITH_OPEN_FILE = """
import os, sys
os.set_inheritable(os.open("/", os.O_RDONLY), True)
os.execvp("python3", ["python3", "-c", PROGRAM])
"""
WITH_TERMINAL = """
import os, pty
pid, master = pty.fork()
if pid == 0:
    os.execvp("python3", ["python3", "-c", PROGRAM])
said = b""
try:
    while piece := os.read(master, 4096):
        said += piece
except OSError:
    pass
os.waitpid(pid, 0)
os.write(1, said)
"""

DAEMON = """
import os, subprocess, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "15", "0", MARK])
    os._exit(0)
os.wait()
time.sleep(0.3)
print("THROUGH", flush=True)
"""
DEAF = """
import os, signal, subprocess, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(3):
    subprocess.Popen(["sleep", "15", "0", MARK], start_new_session=True)
print("THROUGH", flush=True)
time.sleep(15)
"""
STOPPED = """
import os, signal, subprocess, time
child = subprocess.Popen(["sleep", "15", "0", MARK], start_new_session=True)
print("THROUGH", flush=True)
if INSIDE:  # nobody else is there
    for pid in range(1, 64):
        if pid != os.getpid():
            try: os.kill(pid, signal.SIGSTOP)
            except OSError: pass
os.kill(child.pid, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
"""

FORKS = """
import os, time
made = 0
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(20); os._exit(0)
        made += 1
except OSError:
    pass
"""
FEW_FORKS = """
import os
for _ in range(5):
    if os.fork() == 0: os._exit(0)
assert all(os.wait()[1] == 0 for _ in range(5))
"""
TAKES = {
    "memory": "held = bytearray(200 << 20)\nfor at in range(0, len(held), 4096): held[at] = 1",
    "shared-memory": "import mmap\nheld = mmap.mmap(-1, 200 << 20)\nfor at in range(0, len(held), 4096): held[at] = 1",
    "memory-of-files": "import os\nfor _ in range(20): os.write(os.memfd_create('held'), bytes(10 << 20))",
    "memory-of-many": """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(b"x" * (30 << 20))
        time.sleep(1); os._exit(0)
assert all(os.wait()[1] == 0 for _ in range(6))
""",
    "processes": FORKS + "assert made == 60",
    "threads": """
import threading, time
for _ in range(60): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
""",
    "disk": "open('/work/held', 'wb').write(bytes(24 << 20))",
    "temporary-files": "open('/tmp/held', 'wb').write(bytes(24 << 20))",
    "one-file": "open('/work/held', 'wb').write(bytes(8 << 20))",
    "open-files": "import os\nfor _ in range(500): os.dup(0)",
    "output": "import os\nfor _ in range(48): os.write(1, bytes(1 << 16))",
    "processor": "import time\nwhile time.process_time() < 0.5: pass",
    "time": "import time\ntime.sleep(1.5)",
}
"""Each takes more than a small sandbox has, and less than a large one."""


def takes(name: str) -> str:
    return f"{TAKES[name]}\nimport os; os.write(1, b'THROUGH'); os._exit(0)"


SECRET = 918273645546372819
_LOOK = """
import os, re

FORM = re.compile(rb"91827364[0-9]{10}")


def looked(read):
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        if int(pid) != os.getpid():
            try:
                for data in read("/proc/" + pid):
                    found = FORM.search(data)
                    if found:
                        return int(found.group())
            except OSError:
                pass
    return 0
"""

GRADER_FILES = (
    _LOOK
    + """

def read(place):
    for name in ("cmdline", "environ"):
        try:
            yield open(place + "/" + name, "rb").read()
        except OSError:
            pass
    for name in os.listdir(place + "/cwd"):
        try:
            yield open(place + "/cwd/" + name, "rb").read(1 << 20)
        except OSError:
            pass


def sq(x):
    return looked(read)
"""
)
GRADER_DESCRIPTORS = (
    _LOOK
    + """

def read(place):
    for place in (place, "/proc/self"):
        for name in os.listdir(place + "/fd"):
            try:
                descriptor = os.open(place + "/fd/" + name, os.O_RDONLY | os.O_NONBLOCK)
                yield os.read(descriptor, 1 << 16)
            except OSError:
                pass


def sq(x):
    return looked(read)
"""
)
GRADER_MEMORY = (
    _LOOK
    + """

def read(place):
    with open(place + "/maps") as maps, open(place + "/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if "r" in rights and end - start < 1 << 26 and start < 1 << 47:
                try:
                    memory.seek(start)
                    yield memory.read(end - start)
                except (OSError, ValueError):
                    pass


def sq(x):
    return looked(read)
"""
)
GRADER_KILLED = """
import os, signal


def sq(x):
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
    os.kill(os.getpid(), signal.SIGKILL)
"""
