"""Starts the small internet of `world.py` and runs tests inside it."""

from __future__ import annotations

import ctypes
import functools
import inspect
import json
import os
import pickle
import select
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

START_SECONDS = 120.0
TEST_SECONDS = 300.0
ROOT = Path(__file__).parents[3]


class LabUnavailable(Exception):
    """This host cannot make the namespaces or has no resolver to run in them."""


class Lab:
    """A running small internet, and what was seen in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        if not shutil.which("dnsmasq") and not Path("/usr/sbin/dnsmasq").exists():
            raise LabUnavailable("no dnsmasq; run scripts/ci-egress")
        self._rootless = os.geteuid() != 0
        argv = ["unshare", *(["--map-root-user"] if self._rootless else []), "--net", "--mount"]
        argv += ["--propagation", "private", sys.executable, "-m", "tests.attacks.egress.world", str(directory)]
        with (directory / "world.log").open("wb") as log:
            self._world = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT)
        end = time.monotonic() + START_SECONDS
        while not (directory / "ready").exists():
            if self._world.poll() is not None or time.monotonic() > end:
                self.close()
                raise LabUnavailable(
                    f"no network namespace of our own: {(directory / 'world.log').read_text()[-2000:]}"
                )
            time.sleep(0.02)

    def close(self) -> None:
        if self._world.stdin:
            self._world.stdin.close()
        try:
            self._world.wait(5)
        except subprocess.TimeoutExpired:
            self._world.kill()
            self._world.wait()

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"

    def hits(self, tag: str | None = None) -> list[dict[str, Any]]:
        """What reached the servers so far."""
        path = self.directory / "hits"
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [hit for hit in found if tag in (None, hit["tag"])]

    def queries(self) -> list[str]:
        """The names that reached the resolver so far."""
        lines = (self.directory / "dns.log").read_text().splitlines()
        return [line.split("query[", 1)[1].split(" ")[1].lower() for line in lines if "query[" in line]

    def run(self, function: Callable[..., Any], **kwargs: Any) -> None:
        """Call `function` in a forked copy of this process that lives in the small internet; fails where it does."""
        self._settle()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _report(write, self._inside, function, kwargs)
        os.close(write)
        outcome, text = _outcome(read, pid)
        if outcome == "skipped":
            pytest.skip(text)
        if outcome != "passed":
            pytest.fail(f"inside the lab:\n{text}", pytrace=False)

    def _settle(self) -> None:
        """Wait until what an earlier test sent has been written down: the servers write once they get to it."""
        seen = -1
        while seen != (seen := len(self.hits())):
            time.sleep(0.1)

    def _inside(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        for name in (*(("user",) if self._rootless else ()), "net", "mnt"):
            descriptor = os.open(f"/proc/{self._world.pid}/ns/{name}", os.O_RDONLY)
            if libc.setns(descriptor, 0):
                raise OSError(ctypes.get_errno(), f"cannot join the {name} namespace")
            os.close(descriptor)
        os.chdir(ROOT)
        call = functools.partial(function, **kwargs)
        if inspect.iscoroutinefunction(function):
            anyio.run(call)
        else:
            call()


def _report(write: int, inside: Callable[..., None], function: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    """Run and tell; never returns into the copy of pytest that this process is."""
    told = ("passed", "")
    try:
        inside(function, kwargs)
    except pytest.skip.Exception as skipped:
        told = ("skipped", str(skipped))
    except BaseException:  # noqa: BLE001 — whatever it was, the parent shows it
        told = ("failed", traceback.format_exc())
    finally:
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(told, pipe)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _outcome(read: int, pid: int) -> tuple[str, str]:
    with os.fdopen(read, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], TEST_SECONDS)
        if not ready:
            os.kill(pid, 9)
        data = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else ("failed", "it took too long, or died")


def in_lab(test: Callable[..., Any]) -> Callable[..., None]:
    """A test that runs inside the small internet; it takes `lab` among its arguments."""

    @functools.wraps(test)
    def run(**kwargs: Any) -> None:
        kwargs["lab"].run(test, **kwargs)

    return run
