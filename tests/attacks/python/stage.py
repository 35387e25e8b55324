"""Runs hostile programs without the kernel's walls, and therefore only inside a container that is thrown away.

As first process of a PID namespace of its own it cannot be killed by what it starts, adopts every orphan, and takes
everything with it when it ends. `refuse_outside_a_container` is asked before anything else happens: this program on a
real host would let a stranger's code kill, read and write whatever the operator can.

Reads a job from standard input, `{"mode": …, "attacks": [ids], "workers": n}`, and prints one JSON line per attack.
Modes: `control` (no guard, no seal), `guard` (the guard alone), `sealed` (what `--isolation guard` gives)."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections import deque
from pathlib import Path

HOSTNAME = "securebench-stage"
BASE = Path("/tmp/stage")


def refuse_outside_a_container() -> None:
    """Raises SystemExit unless every sign says that this is the throw-away container made for us."""
    status = Path("/proc/self/status").read_text()
    signs = {
        "first process of a PID namespace": os.getpid() == 1,
        "not the superuser": os.geteuid() != 0,
        "no capabilities": "CapEff:\t0000000000000000" in status,
        "the stage's own host name": socket.gethostname() == HOSTNAME,
        "no network but loopback": Path("/proc/net/dev").read_text().count(":") == 1,
        "no home directories": not Path("/home").exists(),
    }
    if missing := [name for name, seen in signs.items() if not seen]:
        print(f"refused: this is not the stage's container; missing: {', '.join(missing)}", file=sys.stderr)
        raise SystemExit(3)


class Worker:
    """A process that plays the harness: it starts one hostile program at a time, and may be killed by it."""

    def __init__(self, mode: str) -> None:
        self.ours, theirs = socket.socketpair()
        self.current: str | None = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                self.ours.close()
                os.setsid()
                _work(mode, theirs)
                status = 0
            finally:
                os._exit(status)
        theirs.close()

    def give(self, attack: str) -> None:
        self.current = attack
        self.ours.sendall(attack.encode() + b"\n")

    def take(self) -> dict[str, object] | None:
        """Its answer once it has come; a dead worker's is that the attack killed it."""
        data = bytearray()
        self.ours.settimeout(30)
        while not data.endswith(b"\n"):
            try:
                chunk = self.ours.recv(65536)
            except OSError:
                chunk = b""
            if not chunk:
                return None
            data += chunk
        self.current = None
        found: dict[str, object] = json.loads(data)
        return found


def _work(mode: str, channel: socket.socket) -> None:
    from tests.attacks.python.programs import BY_ID
    from tests.attacks.python.running import run_on_stage
    from tests.attacks.python.world import World

    with channel.makefile("r") as ids:
        for line in ids:
            attack = BY_ID[line.strip()]
            began = time.monotonic()
            with World(attack, BASE) as world:
                ran = run_on_stage(mode, world)
                done = world.succeeded(ran, control=mode == "control")
                world.end_leftovers()
            channel.sendall(
                json.dumps(
                    {"id": attack.id, "succeeded": done, "note": ran.note, "seconds": time.monotonic() - began}
                ).encode()
                + b"\n"
            )


def _play(mode: str, ids: list[str], count: int) -> None:
    import select

    waiting = deque(ids)
    workers: list[Worker] = []
    while waiting or any(worker.current for worker in workers):
        while len(workers) < count and waiting:
            workers.append(Worker(mode))
        for worker in workers:
            if worker.current is None and waiting:
                worker.give(waiting.popleft())
        busy = [worker.ours for worker in workers if worker.current]
        readable, _, _ = select.select(busy, [], [], 0.2)
        _reap()
        for worker in [worker for worker in workers if worker.ours in readable]:
            attack = worker.current
            if (answer := worker.take()) is None:
                answer = {"id": attack, "succeeded": True, "note": "the process that started it died"}
                worker.ours.close()
                workers.remove(worker)
            print(json.dumps(answer), flush=True)
    for worker in workers:
        worker.ours.close()


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def main() -> None:
    refuse_outside_a_container()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    job = json.loads(sys.stdin.read())
    BASE.mkdir()
    from tests.attacks.python.programs import BY_ID

    together = [name for name in job["attacks"] if not BY_ID[name].alone]
    _play(job["mode"], together, job["workers"])
    for name in job["attacks"]:
        if BY_ID[name].alone:
            _play(job["mode"], [name], 1)
    print(json.dumps({"end": time.time()}), flush=True)


if __name__ == "__main__":
    main()
