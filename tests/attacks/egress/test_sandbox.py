"""B03: from inside a real sandbox there is the proxy and nothing else. The catalogue has B11, and more of this."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.attacks.egress.clients import ALLOWED, Running
from tests.attacks.egress.inside import FETCH, RAW_SOCKETS
from tests.attacks.egress.lab import Lab, in_lab

from securebench.egress.proxy import proxy_environment, serve_proxy
from securebench.egress.rules import EgressRules
from securebench.sandboxes.base import Command, Limits, Network, SandboxSpec, Session
from securebench.sandboxes.select import make_sandbox

PORT = 18462
PYTHON = "/usr/bin/python3"


@asynccontextmanager
async def sandbox(*domains: str) -> AsyncIterator[tuple[Session, Running]]:
    """A bubblewrap sandbox whose only way out is a proxy to these domains."""
    backend = make_sandbox("bubblewrap")
    capabilities = await backend.probe()
    if not capabilities.usable:
        (pytest.fail if os.environ.get("SECUREBENCH_CI") else pytest.skip)(f"bubblewrap: {capabilities.remedy}")
    spec = SandboxSpec(
        env=proxy_environment(PORT), network=Network.LOOPBACK, listeners=(PORT,), limits=Limits(wall_seconds=300)
    )
    async with backend.open(spec) as session, anyio.create_task_group() as tasks:
        running = Running(PORT)
        tasks.start_soon(serve_proxy, session.listener(PORT), EgressRules(frozenset(domains)), running.log)
        yield session, running
        tasks.cancel_scope.cancel()


async def inside(session: Session, program: str, *args: str, stdin: bytes = b"") -> dict[str, Any]:
    result = await session.run(Command((PYTHON, "-I", "-c", program, *args), stdin=stdin))
    assert result.ok, result.stderr.data
    said: dict[str, Any] = json.loads(result.stdout.data)
    return said


@in_lab
async def test_no_socket_of_any_kind_gets_out_of_the_sandbox(lab: Lab) -> None:
    label, before = uuid.uuid4().hex, len(lab.hits())
    async with sandbox(ALLOWED) as (session, running):
        said = await inside(session, RAW_SOCKETS, label)
    assert len(said) == 15
    assert "reached" not in said.values(), said
    assert running.log.decisions == ()
    assert len(lab.hits()) == before
    assert not [name for name in lab.queries() if label in name]


@in_lab
def test_control_without_the_sandbox_each_of_them_does(lab: Lab) -> None:
    label = uuid.uuid4().hex
    done = subprocess.run([PYTHON, "-I", "-c", RAW_SOCKETS, label], capture_output=True, check=True, timeout=200)
    said = json.loads(done.stdout)
    assert set(said.values()) == {"reached"}, said
    assert {f"{label}.evil.test", f"{label}x.evil.test"} <= set(lab.queries())


@in_lab
async def test_what_is_allowed_is_reached_from_inside_and_nothing_else_is(lab: Lab) -> None:
    allowed = [f"https://{ALLOWED}/echo", f"http://{ALLOWED}/echo"]
    refused = ["https://other.lab.test/", "http://meta.lab.test/", "https://93.184.216.34/", "http://169.254.169.254/"]
    async with sandbox(ALLOWED, "meta.lab.test") as (session, running):
        said = await inside(session, FETCH, *allowed, *refused, stdin=lab.ca.read_bytes())
    assert [said[url] for url in allowed] == ["public", "public"]
    assert all("403" in said[url] for url in refused), said
    assert sorted(running.reasons()) == ["bad_name", "bad_name", "not_allowed", "private_address"]
