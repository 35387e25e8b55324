"""Sockets in all spellings, and what in the library opens one for you. Listeners wait outside on loopback."""

from __future__ import annotations

from tests.attacks.python.attack import Seen, table

B = Seen.BYTES

HTTP = "'http://127.0.0.1:%d/%s' % (@TCP@, @MARK@)"

ATTACKS = table(
    "network",
    [
        (
            "tcp",
            "socket",
            B,
            "import socket\ns = socket.socket()\ns.connect(('127.0.0.1', @TCP@))\ns.sendall(@MARK@.encode())",
        ),
        (
            "create-connection",
            "socket",
            B,
            "import socket\nsocket.create_connection(('127.0.0.1', @TCP@), 2).sendall(@MARK@.encode())",
        ),
        (
            "c-socket",
            "_socket",
            B,
            "import _socket\ns = _socket.socket()\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "c-socket-type",
            "_socket",
            B,
            "import socket\nbase = socket.socket.__mro__[1]\ns = base(2, 1, 0)\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "socket-subclass",
            "socket",
            B,
            "import socket\nclass S(socket.socket): pass\ns = S()\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "socket-by-subclasses",
            "socket",
            B,
            "import socket\nc = [c for c in object.__subclasses__() if c.__name__ == 'socket'][0]\ns = c(2, 1, 0)\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "socket-reimported",
            "socket",
            B,
            "import sys\nfor n in ('socket', '_socket'): sys.modules.pop(n, None)\nimport socket\ns = socket.socket()\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        ("udp", "socket", B, "import socket\nsocket.socket(2, 2).sendto(@MARK@.encode(), ('127.0.0.1', @UDP@))"),
        (
            "udp-sendmsg",
            "socket",
            B,
            "import socket\nsocket.socket(2, 2).sendmsg([@MARK@.encode()], [], 0, ('127.0.0.1', @UDP@))",
        ),
        (
            "udp-connect",
            "socket",
            B,
            "import socket\ns = socket.socket(2, 2)\ns.connect_ex(('127.0.0.1', @UDP@))\ns.send(@MARK@.encode())",
        ),
        (
            "tcp6-mapped",
            "socket",
            B,
            "import socket\ns = socket.socket(10, 1)\ns.setsockopt(41, 26, 0)\ns.connect(('::ffff:127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "fastopen",
            "socket",
            B,
            "import socket\ns = socket.socket()\ntry: s.sendto(@MARK@.encode(), 0x20000000, ('127.0.0.1', @TCP@))\nexcept BlockingIOError: pass",
        ),
        (
            "non-blocking",
            "socket",
            B,
            "import socket, time\ns = socket.socket()\ns.setblocking(False)\ns.connect_ex(('127.0.0.1', @TCP@))\ntime.sleep(0.2)\ns.send(@MARK@.encode())",
        ),
        (
            "unix-stream",
            "unix sockets",
            B,
            "import socket\ns = socket.socket(1, 1)\ns.connect(@UNIX@)\ns.send(@MARK@.encode())",
        ),
        ("unix-datagram", "unix sockets", B, "import socket\nsocket.socket(1, 2).sendto(@MARK@.encode(), @UNIXDGRAM@)"),
        (
            "unix-abstract",
            "unix sockets",
            B,
            "import socket\ns = socket.socket(1, 1)\ns.connect('\\0' + @ABSTRACT@)\ns.send(@MARK@.encode())",
        ),
        (
            "urllib",
            "urllib",
            B,
            f"import urllib.request\ntry: urllib.request.urlopen({HTTP}, timeout=1)\nexcept OSError as e:\n    if not isinstance(e, TimeoutError) and 'timed out' not in str(e): raise",
        ),
        (
            "http-client",
            "http.client",
            B,
            "import http.client\nc = http.client.HTTPConnection('127.0.0.1', @TCP@, timeout=1)\nc.request('GET', '/' + @MARK@)",
        ),
        (
            "ftplib",
            "ftplib",
            B,
            "import ftplib\nf = ftplib.FTP()\nf.timeout = 0.5\nimport socket\ns = socket.create_connection(('127.0.0.1', @TCP@), 1)\nf.sock = s\nf.af = s.family\nf.putline(@MARK@)",
        ),
        (
            "smtplib",
            "smtplib",
            B,
            "import smtplib\ns = smtplib.SMTP()\ns.timeout = 1\ns.sock = s._get_socket('127.0.0.1', @TCP@, 1)\ns.send(@MARK@)",
        ),
        (
            "xmlrpc",
            "xmlrpc",
            B,
            "import socket, xmlrpc.client\nsocket.setdefaulttimeout(1)\ntry: getattr(xmlrpc.client.ServerProxy('http://127.0.0.1:%d' % @TCP@), @MARK@)()\nexcept TimeoutError: pass",
        ),
        (
            "logging-socket-handler",
            "logging",
            B,
            "import logging.handlers\nh = logging.handlers.SocketHandler('127.0.0.1', @TCP@)\nh.createSocket()\nh.send(@MARK@.encode())",
        ),
        (
            "logging-datagram-handler",
            "logging",
            B,
            "import logging.handlers\nlogging.handlers.DatagramHandler('127.0.0.1', @UDP@).send(@MARK@.encode())",
        ),
        (
            "logging-syslog",
            "logging",
            B,
            "import logging, logging.handlers\nh = logging.handlers.SysLogHandler(('127.0.0.1', @UDP@))\nh.emit(logging.makeLogRecord({'msg': @MARK@}))",
        ),
        (
            "asyncio-streams",
            "asyncio",
            B,
            "import asyncio\nasync def m():\n    r, w = await asyncio.open_connection('127.0.0.1', @TCP@)\n    w.write(@MARK@.encode())\n    await w.drain()\nasyncio.run(m())",
        ),
        (
            "asyncio-datagram",
            "asyncio",
            B,
            "import asyncio\nasync def m():\n    t, p = await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=('127.0.0.1', @UDP@))\n    t.sendto(@MARK@.encode())\n    await asyncio.sleep(0.05)\nasyncio.run(m())",
        ),
        (
            "asyncio-sock-connect",
            "asyncio",
            B,
            "import asyncio, socket\nasync def m():\n    s = socket.socket(); s.setblocking(False)\n    l = asyncio.get_running_loop()\n    await l.sock_connect(s, ('127.0.0.1', @TCP@))\n    await l.sock_sendall(s, @MARK@.encode())\nasyncio.run(m())",
        ),
        (
            "ssl-wrapped",
            "ssl",
            B,
            "import socket, ssl\nc = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)\nc.check_hostname = False\ns = c.wrap_socket(socket.socket(), server_hostname=@MARK@ + '.invalid', do_handshake_on_connect=False)\ns.settimeout(0.5)\ns.connect(('127.0.0.1', @TCP@))\ntry: s.do_handshake()\nexcept OSError: pass",
        ),
        (
            "multiprocessing-client",
            "multiprocessing",
            B,
            "import multiprocessing.connection as c\ns = c.SocketClient(('127.0.0.1', @TCP@))\ns.send_bytes(@MARK@.encode())",
        ),
        (
            "detached-descriptor",
            "socket",
            B,
            "import os, socket\ns = socket.socket()\ns.connect(('127.0.0.1', @TCP@))\nos.write(s.detach(), @MARK@.encode())",
        ),
        (
            "ctypes-libc",
            "ctypes",
            B,
            "import ctypes, struct\nl = ctypes.CDLL(None)\nfd = l.socket(2, 1, 0)\nl.connect(fd, struct.pack('<H', 2) + struct.pack('>H', @TCP@) + bytes([127, 0, 0, 1]) + bytes(8), 16)\nl.send(fd, @MARK@.encode(), len(@MARK@), 0)",
        ),
        (
            "ctypes-syscall",
            "ctypes",
            B,
            "import ctypes, platform, struct\nn = {'x86_64': (41, 42, 1), 'aarch64': (198, 203, 64)}[platform.machine()]\nl = ctypes.CDLL(None)\nfd = l.syscall(n[0], 2, 1, 0)\nl.syscall(n[1], fd, struct.pack('<H', 2) + struct.pack('>H', @TCP@) + bytes([127, 0, 0, 1]) + bytes(8), 16)\nl.syscall(n[2], fd, @MARK@.encode(), len(@MARK@))",
        ),
        (
            "connect-then-close-guard",
            "socket",
            B,
            "import socket, threading, _socket\nsocket.socket.connect = _socket.socket.connect\ns = socket.socket()\ns.connect(('127.0.0.1', @TCP@))\ns.send(@MARK@.encode())",
        ),
        (
            "late-socket",
            "socket",
            B,
            "import _socket, sys\nclass X:\n    def __del__(self, S=_socket.socket, p=@TCP@, m=@MARK@.encode()):\n        s = S(2, 1, 0); s.connect(('127.0.0.1', p)); s.send(m)\nsys.keep = X()",
        ),
    ],
)
