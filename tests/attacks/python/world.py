"""The outside of one hostile program: what it must not reach, laid out so that somebody can see whether it did.

Used at every level alike. Where a program runs unprotected, the whole world lies inside a throw-away container."""

from __future__ import annotations

import contextlib
import marshal
import os
import pickle
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.attacks.python.attack import Attack, Seen

ENVIRONMENT_TOKEN = "SB_ATTACK_TOKEN"
_MODULUS = 2**127 - 1
_WATCHER = ["/bin/sh", "-c", "while sleep 0.1; do :; done"]

REACHED_AT = {
    "memory": 300 * 2**20,
    "cpu": 1.5,
    "wall": 3.0,
    "pids": 40,
    "open_files": 190,
    "file_size": 9 * 2**20,
    "disk": 36 * 2**20,
    "output": 4 * 2**20,
}
"""What a resource attack has reached when it did what it claims; every limit it is run under lies far below."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of a program as somebody outside saw it."""

    stdout: bytes
    measured: dict[str, float] = field(default_factory=dict)
    starter_died: bool = False
    note: str = ""


class World:
    """Everything outside one program, from before it starts until its evidence was looked at."""

    def __init__(self, attack: Attack, base: Path) -> None:
        self.attack = attack
        self.mark = f"mark-{secrets.token_hex(12)}"
        self._secret = f"secret-{secrets.token_hex(12)}"
        self._listed = f"secret-{secrets.token_hex(12)}"
        self._linked = f"secret-{secrets.token_hex(12)}"
        self._size = 10**11 + secrets.randbelow(10**11)
        power = (secrets.randbelow(2**60) + 2**59, 65537, _MODULUS)
        number, packed = secrets.randbelow(2**63) + 2**62, secrets.randbelow(2**62) + 2**61
        left, right = secrets.randbelow(10**8) + 10**8, secrets.randbelow(10**8) + 10**8
        self._answers = {str(pow(*power)), str(number * 3 % 2**64), str(packed)}
        self._product = str(left * right)
        self._reached = f"reached-{secrets.token_hex(8)}"
        self._second = f"second-{secrets.token_hex(8)}"
        self.outside = base / f"outside-{secrets.token_hex(4)}"
        self.values: dict[str, object] = {
            "EXPR": f"pow({power[0]}, {power[1]}, {power[2]})",
            "POW": power,
            "NUM": number,
            "PICKLE": pickle.dumps(packed).hex(),
            "MARSHAL": marshal.dumps(packed).hex(),
            "SHELL": f"echo $(( {left} * {right} ))",
            "MARK": self.mark,
            "REACHED": self._reached,
            "SECOND": self._second,
            "SECRET": f"{self.outside}/plain.txt",
            "SPARSE": f"{self.outside}/sparse",
            "LINK": f"{self.outside}/link",
            "TARGET": f"{self.outside}/target.txt",
            "NEW": f"{self.outside}/new",
            "TREE": f"{self.outside}/tree",
            "DATABASE": f"{self.outside}/data.db",
        }
        self._listeners: list[socket.socket] = []
        self._watcher: subprocess.Popen[bytes] | None = None
        self._before: list[object] = []
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> World:
        with contextlib.ExitStack() as stack:
            self._lay_out(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def source(self) -> bytes:
        return self.attack.filled(self.values).encode()

    def _uses(self, name: str) -> bool:
        return f"@{name}@" in self.attack.source

    def _lay_out(self, stack: contextlib.ExitStack) -> None:
        self.outside.mkdir(parents=True)
        stack.callback(_remove, self.outside)
        self.outside.chmod(0o777)
        (self.outside / f"{self._listed}.txt").touch()
        (self.outside / "plain.txt").write_text(self._secret)
        (self.outside / "target.txt").write_text("as it was")
        (self.outside / "tree" / "empty").mkdir(parents=True)
        os.symlink(f"/nowhere/{self._linked}", self.outside / "link")
        with open(self.outside / "sparse", "wb") as file:
            file.truncate(self._size)
        if self._uses("DATABASE"):
            with contextlib.closing(sqlite3.connect(self.outside / "data.db")) as database:
                database.execute("create table s(t)")
                database.execute("insert into s values (?)", [self._secret])
                database.commit()
        for path in (self.outside, *self.outside.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777 if path.is_dir() else 0o666)
        self._listen(stack)
        if self._uses("WATCHER") or self.attack.seen is Seen.DEAD:
            self._watch(stack)
        if "inherited" in self.attack.id:
            leaked = os.open(self.outside / "plain.txt", os.O_RDONLY)
            os.set_inheritable(leaked, True)
            stack.callback(os.close, leaked)
        self._before = self._picture()

    def _listen(self, stack: contextlib.ExitStack) -> None:
        def listener(name: str, family: int, kind: int, address: object) -> None:
            if not self._uses(name):
                return
            made = stack.enter_context(socket.socket(family, kind))
            made.setblocking(False)
            made.bind(address)
            if kind == socket.SOCK_STREAM:
                made.listen(4)
            self._listeners.append(made)
            bound = made.getsockname()
            self.values[name] = bound[1] if family == socket.AF_INET else (bound if isinstance(bound, str) else "")

        listener("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        listener("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        listener("UNIX", socket.AF_UNIX, socket.SOCK_STREAM, f"{self.outside}/s")
        listener("UNIXDGRAM", socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.outside}/d")
        abstract = f"sb-{secrets.token_hex(8)}"
        listener("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
        self.values["ABSTRACT"] = abstract
        for path in self.outside.glob("[sd]"):
            path.chmod(0o777)

    def _watch(self, stack: contextlib.ExitStack) -> None:
        watcher = subprocess.Popen(
            _WATCHER, env={"TOKEN": self._secret, "PATH": "/usr/bin:/bin"}, start_new_session=True, stdin=-3, stdout=-3
        )

        def end() -> None:
            watcher.kill()
            watcher.wait()

        stack.callback(end)
        self._watcher = watcher
        self.values["WATCHER"] = watcher.pid

    def _picture(self) -> list[object]:
        found: list[object] = []
        for path in sorted(self.outside.rglob("*")):
            seen = path.lstat()
            text = path.read_bytes() if path.name == "target.txt" else b""
            found.append((str(path), seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_nlink, text))
        return found

    def succeeded(self, ran: Ran, *, control: bool = False) -> bool:
        """Whether the attack did what it claims. As a control, what a program merely says of itself does not count."""
        out = ran.stdout
        if ran.starter_died:
            return True
        match self.attack.seen:
            case Seen.ANSWER:
                return any(answer.encode() in out for answer in self._answers)
            case Seen.SECRET:
                tokens = [self._secret, self._listed, self._linked, str(self._size), os.environ.get(ENVIRONMENT_TOKEN)]
                return any(token.encode() in out for token in tokens if token)
            case Seen.CHANGED:
                return self._picture() != self._before
            case Seen.BYTES:
                return any(self.mark.encode() in data for data in self._received())
            case Seen.CHILD:
                return self._product.encode() in out
            case Seen.ORPHAN:
                return bool(ran.measured.get("orphans")) or (not control and self._second.encode() in out)
            case Seen.DEAD:
                return self._watcher_died(30.0 if control else 0.0)
            case Seen.LIMIT:
                amount = ran.measured.get(self.attack.resource, 0)
                said = self._reached.encode() in out
                return amount >= REACHED_AT[self.attack.resource] or (not control and said)

    def _watcher_died(self, patience: float) -> bool:
        assert self._watcher is not None
        until = time.monotonic() + patience
        while self._watcher.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        return self._watcher.poll() is not None

    def _received(self) -> Iterator[bytes]:
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                if listener.type == socket.SOCK_DGRAM:
                    yield listener.recv(65536)
                    continue
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.settimeout(0.5)
                        yield connection.recv(65536)

    def processes(self) -> list[int]:
        """Processes anywhere that carry our mark on their command line."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                    found.append(int(entry.name))
        return found

    def end_leftovers(self) -> int:
        """Kill what carries our mark and still runs; how many there were."""
        left = self.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return len(left)


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
