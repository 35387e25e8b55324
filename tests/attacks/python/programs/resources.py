"""More than one's share. `@…@` amounts lie well beyond the limits that `LIMITS` sets; the control measures from outside."""

from __future__ import annotations

from tests.attacks.python.attack import Attack, Seen

LIMITS = {
    "memory": 192 * 2**20,
    "cpu": 1.0,
    "wall": 6.0,
    "file_size": 4 * 2**20,
    "open_files": 64,
    "pids": 16,
    "output": 64 * 2**10,
    "disk": 16 * 2**20,
}

HELD = "\nprint(@REACHED@, flush=True)\nimport time\ntime.sleep(1)"


def _attack(name: str, resource: str, source: str, **limits: float) -> Attack:
    return Attack(f"resources-{name}", "resources", resource, Seen.LIMIT, source.strip() + "\n", resource, limits)


ATTACKS = [
    _attack("memory-bytes", "memory", "x = bytearray(320 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1" + HELD),
    _attack("memory-list", "memory", "x = [0] * (40 << 20)" + HELD),
    _attack(
        "memory-mmap",
        "memory",
        "import mmap\nx = mmap.mmap(-1, 320 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1" + HELD,
    ),
    _attack(
        "memory-private-mmap",
        "memory",
        "import mmap\nx = mmap.mmap(-1, 320 << 20, flags=mmap.MAP_PRIVATE)\nfor i in range(0, len(x), 4096): x[i] = 1"
        + HELD,
    ),
    _attack("memory-strings", "memory", "x = ['%08d' % i * 1024 for i in range(40960)]" + HELD),
    _attack(
        "memory-raised-limit",
        "memory",
        "import resource\nr = resource.RLIMIT_AS\ntry: resource.setrlimit(r, (-1, -1))\nexcept (ValueError, OSError): resource.setrlimit(r, (resource.getrlimit(r)[1],) * 2)\nx = bytearray(320 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1"
        + HELD,
    ),
    _attack(
        "memory-threads",
        "memory",
        "import threading, time\nkeep = []\ndef go():\n    x = bytearray(110 << 20)\n    for i in range(0, len(x), 4096): x[i] = 1\n    keep.append(x)\nts = [threading.Thread(target=go) for _ in range(3)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nassert len(keep) == 3"
        + HELD,
    ),
    _attack(
        "memory-decompressed",
        "memory",
        "import zlib\nz = zlib.compress(bytes(1 << 20), 9)\nx = bytearray()\nfor _ in range(320): x += zlib.decompress(z)"
        + HELD,
    ),
    _attack(
        "memory-anonymous-file",
        "memory",
        "import os\nfd = os.memfd_create('x')\nfor _ in range(320): os.write(fd, bytes(1 << 20))\nimport mmap\nm = mmap.mmap(fd, 320 << 20)\nfor i in range(0, len(m), 4096): m[i]"
        + HELD,
    ),
    _attack(
        "memory-children",
        "memory",
        "import os, time\nr, w = os.pipe()\nfor _ in range(4):\n    if not os.fork():\n        x = bytearray(80 << 20)\n        for i in range(0, len(x), 4096): x[i] = 1\n        os.write(w, b'.'); time.sleep(3); os._exit(0)\nos.close(w)\nfor _ in range(4): assert os.read(r, 1)"
        + HELD,
    ),
    _attack("cpu-loop", "cpu", "import time\nwhile time.process_time() < 1.6: pass\nprint(@REACHED@)"),
    _attack(
        "cpu-threads",
        "cpu",
        "import threading, time\ndef go():\n    while time.process_time() < 1.6: pass\nts = [threading.Thread(target=go) for _ in range(3)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint(@REACHED@)",
    ),
    _attack(
        "cpu-ignored-signal",
        "cpu",
        "import signal, time\nfor s in (signal.SIGXCPU, signal.SIGTERM, signal.SIGALRM, signal.SIGPROF): signal.signal(s, signal.SIG_IGN)\nwhile time.process_time() < 1.6: pass\nprint(@REACHED@)",
    ),
    _attack(
        "cpu-raised-limit",
        "cpu",
        "import resource, time\ntry: resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\nexcept (ValueError, OSError): pass\nwhile time.process_time() < 1.6: pass\nprint(@REACHED@)",
    ),
    _attack(
        "cpu-regex",
        "cpu",
        "import re, time\nfor n in range(18, 40):\n    re.match('(a+)+$', 'a' * n + 'b')\n    if time.process_time() > 1.6: break\nprint(@REACHED@)",
    ),
    _attack(
        "cpu-child",
        "cpu",
        "import os, time\nif not os.fork():\n    while time.process_time() < 1.6: pass\n    os._exit(0)\nos.wait()\nprint(@REACHED@)",
    ),
    _attack("wall-sleep", "wall", "import time\ntime.sleep(7)\nprint(@REACHED@)", wall=1.0),
    _attack(
        "wall-ignored-signals",
        "wall",
        "import signal, time\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(7)\nprint(@REACHED@)",
        wall=1.0,
    ),
    _attack(
        "wall-swallowed-exceptions",
        "wall",
        "import time\nend = time.time() + 7\nwhile time.time() < end:\n    try: time.sleep(0.1)\n    except BaseException: pass\nprint(@REACHED@)",
        wall=1.0,
    ),
    _attack(
        "wall-closed-streams",
        "wall",
        "import os, time\nfd = os.dup(1)\nfor n in (0, 1, 2): os.close(n)\ntime.sleep(7)\nos.write(fd, @REACHED@.encode())",
        wall=1.0,
    ),
    _attack(
        "wall-daemon",
        "wall",
        "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(7)\nos.write(1, @REACHED@.encode())",
        wall=1.0,
    ),
    _attack(
        "wall-lock",
        "wall",
        "import threading\nl = threading.Lock(); l.acquire()\nl.acquire(timeout=7)\nprint(@REACHED@)",
        wall=1.0,
    ),
    _attack(
        "threads",
        "pids",
        "import threading, time\ne = threading.Event()\nts = [threading.Thread(target=e.wait, args=(3,), daemon=True) for _ in range(48)]\nfor t in ts: t.start()"
        + HELD
        + "\ne.set()",
    ),
    _attack(
        "processes",
        "pids",
        "import os, time\nfor _ in range(48):\n    if not os.fork(): time.sleep(3); os._exit(0)" + HELD,
    ),
    _attack("open-files", "open_files", "import os\nx = [os.open('.', os.O_RDONLY) for _ in range(200)]" + HELD),
    _attack("open-files-dup", "open_files", "import os\nx = [os.dup(1) for _ in range(200)]" + HELD),
    _attack(
        "open-files-raised-limit",
        "open_files",
        "import os, resource\ntry: resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\nexcept (ValueError, OSError): pass\nx = [os.open('.', os.O_RDONLY) for _ in range(200)]"
        + HELD,
    ),
    _attack("open-files-pipes", "open_files", "import os\nx = [os.pipe() for _ in range(100)]" + HELD),
    _attack(
        "file-size", "file_size", "f = open('big', 'wb')\nfor _ in range(10): f.write(bytes(1 << 20))\nf.flush()" + HELD
    ),
    _attack("file-size-truncate", "file_size", "f = open('big', 'wb')\nf.truncate(64 << 20)" + HELD),
    _attack(
        "file-size-fallocate",
        "file_size",
        "import os\nos.posix_fallocate(os.open('big', os.O_CREAT | os.O_RDWR), 0, 10 << 20)" + HELD,
    ),
    _attack(
        "file-size-ignored-signal",
        "file_size",
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nf = open('big', 'wb', 0)\nn = 0\nwhile n < 10 << 20: n += f.write(bytes(1 << 20))"
        + HELD,
    ),
    _attack(
        "disk-many-files",
        "disk",
        "for i in range(20):\n    with open('f%d' % i, 'wb') as f: f.write(bytes(2 << 20))" + HELD,
    ),
    _attack(
        "disk-temporary",
        "disk",
        "import tempfile\nkeep = []\nfor i in range(20):\n    f = tempfile.NamedTemporaryFile(dir='.'); f.write(bytes(2 << 20)); f.flush(); keep.append(f)"
        + HELD,
    ),
    _attack(
        "disk-deleted-files",
        "disk",
        "import os\nkeep = []\nfor i in range(20):\n    f = open('f%d' % i, 'w+b'); f.write(bytes(2 << 20)); f.flush(); os.remove('f%d' % i); keep.append(f)"
        + HELD,
    ),
    _attack(
        "output-flood", "output", "import sys\nfor _ in range(64): sys.stdout.write('x' * 65536)\nsys.stdout.flush()"
    ),
    _attack("output-flood-stderr", "output", "import os\nfor _ in range(64): os.write(2, b'x' * 65536)"),
]
