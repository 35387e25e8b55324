"""A real Ray cluster of several nodes on one machine, each with processes of its own that can be killed.

Everything of a node has its own temporary directory in its environment, and is found by that: what Ray started, and
what SecureBench started through it. Ray runs in other processes only."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.world import eventually
from tests.e2e.workbench import CLI

_START_SECONDS = 120.0
_STORE = str(80 * 2**20)


def need_ray(*modules: str) -> None:
    missing = [name for name in ("ray", *modules) if find_spec(name) is None]
    if missing:
        message = f"Ray is not installed, or a part of it: {', '.join(missing)} (pip install 'securebench[ray]')"
        if os.environ.get("SECUREBENCH_CI"):
            pytest.fail(message)
        pytest.skip(message)


def free_ports(count: int) -> list[int]:
    """Below those that are given to whoever does not care, and above those that Ray takes by itself."""
    found: list[int] = []
    for port in secrets.SystemRandom().sample(range(25_000, 32_000), 100):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found[:count]


@dataclass
class RayWorld:
    """`base` is short: Ray's sockets lie beneath it."""

    token: str | None = field(default_factory=lambda: secrets.token_hex(32))
    base: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="sbr", dir="/tmp")))
    address: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)  # more of them, for everybody
    _started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base.chmod(0o755)

    # -- the cluster ---------------------------------------------------------------------------------------------

    def start_head(self, client: int | None = None) -> None:
        """`client` is a port for Ray's client."""
        ports = ["--port=0"] if client is None else ["--port=0", f"--ray-client-server-port={client}"]
        self._ray("head", "--head", *ports, "--num-cpus=0", "--include-dashboard=false")
        where = self.base / "head" / "ray_current_cluster"
        self._await("head", lambda: where.exists() and ":" in where.read_text())
        self.address = where.read_text().strip()
        self._await("head", lambda: "Ray runtime started" in (self.base / "head.log").read_text())

    def start_node(self, name: str, cpus: int = 1) -> None:
        """One of the role that `roles` gives it."""
        labels = [f"--labels=securebench.role={self.roles[name]}"] if name in self.roles else []
        self._ray(name, f"--address={self.address}", f"--num-cpus={cpus}", *labels)

    def wait_for(self, name: str) -> None:
        self._await(name, lambda: "Ray runtime started" in (self.base / f"{name}.log").read_text())

    def require(self, *names: str) -> None:
        """Start those of the nodes that are not there."""
        for name in names:
            if not any("raylet/raylet" in line for line in self.processes(name).values()):
                self.kill(name)
                self.start_node(name)
        for name in names:
            self.wait_for(name)

    def _ray(self, name: str, *words: str) -> None:
        (self.base / name).mkdir(exist_ok=True)
        argv = [str(Path(sys.executable).with_name("ray")), "start", *words, f"--temp-dir={self.base / name}"]
        argv += [f"--object-store-memory={_STORE}", "--disable-usage-stats", "--block"]
        with (self.base / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(argv, env=self.env(name), stdout=log, stderr=log, start_new_session=True)
        self._started.append(process)

    def _await(self, name: str, holds: Any) -> None:
        assert eventually(holds, _START_SECONDS), (self.base / f"{name}.log").read_text()[-3000:]

    def env(self, name: str) -> dict[str, str]:
        """The environment of a node, or of a command."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        auth = {"RAY_AUTH_MODE": "disabled"}
        if self.token is not None:
            auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        return {**kept, "TMPDIR": str(self.base / name), **auth, "RAY_enable_worker_prestart": "0", **self.variables}

    # -- what runs -----------------------------------------------------------------------------------------------

    def processes(self, name: str | None = None) -> dict[int, str]:
        """Processes of a node or command, or of all, with their command lines."""
        mark = f"TMPDIR={self.base}/" + ("" if name is None else f"{name}\0")
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    if mark.encode() in (entry / "environ").read_bytes() + b"\0":
                        found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
        return found

    def kill(self, name: str | None = None, part: str = "") -> int:
        """SIGKILL to every process of a node whose command line has `part`; how many there were."""
        killed = 0
        for pid, line in self.processes(name).items():
            if part in line:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    continue
        return killed

    def listening(self, name: str) -> set[str]:
        """Addresses on which processes of a node or command listen, with the port."""
        inodes = set()
        for pid in self.processes(name):
            try:
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    inodes.add(os.readlink(descriptor))
            except OSError:
                continue
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                    found.add(words[1])
        return found

    def end(self) -> None:
        for _ in range(5):
            if not self.kill():
                break
            time.sleep(0.2)
        for process in self._started:
            process.wait(60)
        shutil.rmtree(self.base, ignore_errors=True)

    # -- runs ----------------------------------------------------------------------------------------------------

    def start_run(self, directory: Path, *words: str, name: str = "cli") -> subprocess.Popen[bytes]:
        """The real command line, on this cluster."""
        (self.base / name).mkdir(exist_ok=True)
        argv = [*CLI, "run", "--config", str(directory / "tester.yaml"), "--json", "--progress", "json", *words]
        with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
            process = subprocess.Popen(argv, stdout=out, stderr=err, env=self.env(name), start_new_session=True)
        self._started.append(process)
        return process

    def run(self, directory: Path, *words: str, seconds: float = 240.0) -> int:
        """Start it and let it come to its end; its exit code. Ray's servers for clients, of which every head on this
        machine starts its own, take their ports without asking each other: then once more."""
        for _ in range(4):
            code = self.start_run(directory, *words).wait(seconds)
            if "Starting Ray client server failed" not in said(directory):
                break
        return code


def records(directory: Path, output: str = "out") -> list[dict[str, Any]]:
    """The whole lines there are by now."""
    try:
        data = (directory / output / "candidates.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]


def said(directory: Path) -> str:
    """The end of what the last command wrote to its standard error."""
    return (directory / "stderr").read_text()[-3000:]
