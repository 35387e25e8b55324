"""Containers that are removed and a daemon that dies during a run: the host's fault, never a candidate's, and the same
command completes the run once the daemon is well."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.sandbox.box import processes_with
from tests.crash.world import NOTHING, KilledRun, check_chain, leftovers_soon
from tests.docker.engine import IMAGE, Imaged, containers_of, docker, own_containers
from tests.e2e.workbench import question

from securebench.engine.attempt import REPEATS

ROLES = {
    "its command's": lambda name: not name.endswith("-holder"),
    "its holder": lambda name: name.endswith("-holder"),
}


def _run(tmp_path: Path, command: str) -> KilledRun:
    rows = [question(number, environment={"image": IMAGE}) for number in range(4)]
    return KilledRun(tmp_path / "run", rows, 1, command, {"backend": "docker"})


def _until(run: KilledRun, engine: subprocess.Popen[bytes], seen: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := seen()):
        assert engine.poll() is None, run.said()
        assert time.monotonic() < deadline, run.said()
        time.sleep(0.05)
    return found


def _check_faults(run: KilledRun, least: int) -> list[dict[str, Any]]:
    """What the host did is recorded as its own, and is all there is besides candidates that passed."""
    assert "Traceback" not in run.log.read_text(), run.said()
    records = check_chain(run.output, run.records())
    statuses = [record["verification_status"] for record in records]
    assert set(statuses) <= {"passed", "error"}, [(r["failure_reason"], r["failure_message"]) for r in records]
    assert statuses.count("error") >= least, run.said()
    return [record for record in records if record["verification_status"] == "error"]


def _completes(run: KilledRun, **env: str) -> None:
    """Every attempt ends once, besides what the host had spoilt."""
    assert run.finish("--unsafe", workers=2, **env) == 0, run.said()
    passed = [record["task_id"] for record in run.parsed() if record["passed"]]
    assert sorted(passed) == sorted(row["id"] for row in run.rows)
    assert leftovers_soon(run.pids, run.temporary, 90) == NOTHING  # a switch that was set off goes on for a while


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.usefixtures("sandbox")
def test_a_container_removed_during_a_run_is_the_hosts_fault_and_resuming_completes(tmp_path: Path, role: str) -> None:
    run = _run(tmp_path, "sleep 6; echo 42")
    engine = run.start("--unsafe", workers=2)

    def working() -> list[str]:
        if len(run.events("agent_started")) < 2:
            return []
        return [name for name in containers_of(engine.pid) if ROLES[role](name)]

    victim = _until(run, engine, working)[0]
    assert docker("rm", "--force", victim).returncode == 0
    assert engine.wait(120) == 3, run.said()
    [fault] = _check_faults(run, 1)
    assert fault["passed"] is None
    assert fault["failure_message"]
    assert fault["repeats"] == [], "an agent that has started is not started again behind the operator's back"
    assert containers_of(engine.pid) == []
    _completes(run)
    assert own_containers() == []


@dataclass
class Daemon:
    """A daemon of our own, which may be killed: the host's is everybody's."""

    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        return f"unix://{self.directory}/sock"

    def ask(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        argv = ["docker", "--host", self.host, *args]
        return subprocess.run(argv, capture_output=True, timeout=600, check=False)

    def start(self) -> bool:
        (self.directory / "daemon.json").write_text("{}")
        place = self.directory
        # A network of its own: told to have no bridge, a daemon removes docker0, which is another daemon's here.
        argv = [
            "unshare", "--net",
            shutil.which("dockerd") or "/usr/sbin/dockerd", f"--config-file={place}/daemon.json",
            f"--data-root={place}/data", f"--exec-root={place}/exec", f"--pidfile={place}/pid", f"--host={self.host}",
            "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
        ]  # fmt: skip
        with (place / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.ask("version").returncode == 0:
                return True
            time.sleep(0.1)
        return False

    def kill(self) -> None:
        """As the kernel does when memory runs out; its containers live on, without a daemon."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(120)
        (self.directory / "pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """In an orderly way, with everything it started."""
        if self.process is not None and self.process.poll() is None:
            self.ask("rm", "--force", *self.ask("ps", "--all", "--quiet").stdout.decode().split())
            self.process.terminate()
            self.process.wait(120)
        for pid in processes_with(f"{self.directory}/exec/containerd"):  # whose daemon was killed
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def daemon(sandbox: Imaged) -> Iterator[Daemon]:
    del sandbox  # where no daemon is usable, this one would not be either
    if not os.environ.get("SECUREBENCH_DAEMON_FAULTS"):
        pytest.skip("starts and kills a second daemon on this host: by hand, with SECUREBENCH_DAEMON_FAULTS=1")
    archives = sorted(Path("/var/cache/securebench").glob("base-*.tar"))
    if os.geteuid() != 0 or not archives:
        pytest.skip("a daemon of our own needs root, and the image of scripts/ci-docker as an archive")
    made = Daemon(Path(tempfile.mkdtemp(prefix="crash-daemon-")))
    try:
        if not made.start():
            pytest.skip(f"a second daemon does not start here: {(made.directory / 'log').read_text()[-500:]}")
        assert made.ask("import", str(archives[-1]), IMAGE).returncode == 0
        yield made
    finally:
        made.stop()
        subprocess.run(["umount", "--recursive", made.directory / "data"], check=False, capture_output=True)
        shutil.rmtree(made.directory, ignore_errors=True)


def test_a_daemon_that_is_killed_and_comes_back_spoils_no_verdict(daemon: Daemon, tmp_path: Path) -> None:
    run = _run(tmp_path, "sleep 2; echo 42")
    engine = run.start("--unsafe", workers=2, DOCKER_HOST=daemon.host)
    _until(run, engine, lambda: len(run.events("agent_started")) >= 2)
    time.sleep(0.5)
    daemon.kill()
    time.sleep(2)
    assert daemon.start()
    assert engine.wait(240) == 3, run.said()
    faults = _check_faults(run, 1)
    assert all("daemon" in fault["failure_message"] for fault in faults)
    assert {record["task_id"] for record in run.parsed() if record["passed"]} >= {"t2", "t3"}, "these came later"
    _completes(run, DOCKER_HOST=daemon.host)
    assert daemon.ask("ps", "--all", "--quiet").stdout == b""
    assert daemon.ask("volume", "ls", "--quiet").stdout == b""


def test_a_daemon_that_stays_away_is_said_and_the_run_is_completed_later(daemon: Daemon, tmp_path: Path) -> None:
    run = _run(tmp_path, "sleep 1; echo 42")
    engine = run.start("--unsafe", workers=2, DOCKER_HOST=daemon.host)
    _until(run, engine, lambda: run.events("record_written"))
    daemon.kill()
    try:
        assert engine.wait(240) == 3, run.said()
        assert all(len(fault["repeats"]) <= REPEATS for fault in _check_faults(run, 1))
        assert run.finish("--unsafe", workers=2, DOCKER_HOST=daemon.host) == 3, run.said()
        assert not run.began()
    finally:
        assert daemon.start()
    _completes(run, DOCKER_HOST=daemon.host)
    assert daemon.ask("ps", "--all", "--quiet").stdout == b""
