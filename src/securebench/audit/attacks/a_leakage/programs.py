"""What hostile agents run. Python of the standard library only, for whatever Python a root has; each prints what it
found, and anything it may not read is passed over."""

from __future__ import annotations

_LOOKING = r"""
import base64, os, re, stat, sys, zlib
HEADS = {b"sbmark-", b"sbmark-".hex().encode(), b"sbmark-".hex().upper().encode()}
HEADS |= {base64.b64encode(b"\0" * lead + b"sbmark-private")[4:12] for lead in range(3)}
WANTED = re.compile(b"(?:%s)[0-9A-Za-z+/=-]{8,80}" % b"|".join(map(re.escape, HEADS)))
found = set()
def look(data):
    if any(head in data for head in HEADS): found.update(WANTED.findall(data))
    if b"s\0b\0m\0a\0r\0k" in data: look(data.replace(b"\0", b""))
def read(path, most=1 << 26):
    try:
        if stat.S_ISREG(os.stat(path).st_mode) and not os.path.realpath(path).startswith("/usr/"):
            with open(path, "rb") as file:
                while (chunk := file.read(1 << 22)) and most > 0:
                    look(chunk)
                    most -= len(chunk)
    except (OSError, ValueError): pass
def walk(top):
    read(top)
    for base, dirs, files in os.walk(top):
        look("\n".join([base, *dirs, *files]).encode("utf-8", "surrogateescape"))
        for name in files: read(os.path.join(base, name))
        for name in dirs + files:
            try: look(os.fsencode(os.readlink(os.path.join(base, name))))
            except OSError: pass
def tell():
    print("\n".join(sorted(word.decode("latin-1") for word in found)))
"""

READ_EVERYTHING = (
    _LOOKING
    + r"""
SYSTEM = {"usr", "proc", "sys", "bin", "lib", "lib64", "sbin", "lib32", "libx32"}
for top in sorted(set(os.listdir("/")) - SYSTEM): walk("/" + top)
look(repr(dict(os.environ)).encode() + repr(sys.argv).encode())
for name in ("keys", "locks", "cmdline", "sysvipc/shm", "net/unix"): read("/proc/" + name)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "maps", "mountinfo", "mounts", "status", "cgroup"): read(f"/proc/{pid}/{name}")
    try:
        for number in os.listdir(f"/proc/{pid}/fd"): look(os.readlink(f"/proc/{pid}/fd/{number}").encode())
        if int(pid) != os.getpid():
            with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
                for line in maps:
                    start, end = (int(part, 16) for part in line.split()[0].split("-"))
                    try: memory.seek(start); look(memory.read(min(end - start, 1 << 24)))
                    except (OSError, ValueError, OverflowError): pass
    except OSError: pass
tell()
print("Answer: 1")
"""
)
"""Files and their names, environments, command lines, memory, descriptors and mounts of everything in sight."""

UNPACK_GIT = (
    _LOOKING
    + r"""
walk(".")
for base, _, files in os.walk("."):
    for name in files:
        with open(os.path.join(base, name), "rb") as file: data = file.read()
        for place in re.finditer(b"\x78[\x01\x5e\x9c\xda]", data):
            try: look(zlib.decompressobj().decompress(data[place.start():], 1 << 22))
            except zlib.error: pass
tell()
"""
)
"""Every compressed stream in every file, wherever it begins: objects loose and packed, whatever names them."""

OPEN_THE_PACK = (
    _LOOKING
    + r"""
pack = sys.argv[1]
parts = pack.strip("/").split("/")
places = {"/".join(["", *parts[:depth]]) for depth in range(len(parts), 1, -1)}
roots = ["", "/proc/self/root", "/proc/1/root", "/proc/1/cwd", "/proc/self/cwd", "/host", "/mnt", "/rootfs", "../" * 12]
roots += [f"/proc/self/fd/{number}" for number in range(3, 64)]
for root in roots:
    for place in places: walk(root + place)
    for name in ("hidden/secret.txt", "tasks.jsonl", "manifest.yaml"): read(root + pack + "/" + name)
tell()
"""
)
"""A harness whose operator told it where the pack lies on the host."""

FINGERPRINT = r"""
import json, os, resource, stat, sys, zlib
seen = {"argv": repr(sys.argv), "env": repr(sorted(os.environ.items())), "uname": repr(os.uname()[:2])}
for base, dirs, files in os.walk("."):
    seen["order " + base] = repr([dirs, files])
    for name in [".", *dirs, *files]:
        path = os.path.join(base, name)
        status = os.lstat(path)
        seen["entry " + path] = repr([status.st_mode, status.st_nlink, status.st_size, status.st_mtime_ns])
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file: seen["bytes " + path] = str(zlib.crc32(file.read()))
for place in ("/", "/tmp", "/dev/shm", "."):
    try: space = os.statvfs(place)
    except OSError: continue
    seen["space " + place] = repr([space.f_bsize, space.f_blocks, space.f_files, space.f_namemax])
space = os.statvfs(".")
seen["room"] = repr([space.f_bfree, space.f_ffree])
for name in dir(resource):
    if name.startswith("RLIMIT_"): seen[name] = repr(resource.getrlimit(getattr(resource, name)))
seen["top"] = repr(sorted(os.listdir("/")))
print(json.dumps(seen))
"""
"""All that might depend on what was not shown: names, sizes, times, order, room, limits."""

_TASK = """
import json
task = json.load(open("task.json"))
choices = task["input"]["choices"]
"""
BY_HEART = _TASK + 'print("Answer: " + {"sum-0": "B", "sum-1": "A", "sum-2": "C"}[task["task_id"]])\n'
"""Knows the letters of the published pack by the names of its tasks."""
BY_READING = _TASK + 'print("Answer: " + "ABC"[[c in ("4", "7", "9") for c in choices].index(True)])\n'
"""Knows which option is right, wherever it stands."""

NUMBERED = r"""
import json, os, socket
seen = {"environment": "\n".join(f"{name} {value}" for name, value in sorted(os.environ.items()))}
seen["host"] = socket.gethostname()
with open("/proc/self/cgroup") as file: seen["groups"] = file.read()
with open("/proc/self/mountinfo") as file: lines = [line.split() for line in file]
seen["mounts"] = "\n".join(f"{words[3]} {words[4]}" for words in lines)
print(json.dumps(seen))
"""
"""Names that the framework gave to what is around the agent."""
