"""What is allowed works: otherwise a proxy that refuses everything would pass all the attacks."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from tests.attacks.egress.clients import ALLOWED, away, body, plain_get, proxy, status, tls_get
from tests.attacks.egress.lab import Lab, in_lab

from securebench.egress.decisions import Kind
from securebench.egress.proxy import proxy_environment


@in_lab
async def test_an_allowed_host_is_reached_by_tls_and_by_plain_http(lab: Lab) -> None:
    async with proxy() as running:
        secure = body(await away(tls_get, running.port, lab.ca))
        assert (secure["tag"], secure["sni"]) == ("public", ALLOWED)
        plain = await away(plain_get, running.port)
        assert status(plain) == 200
        assert b'"tag": "public"' in plain
        ended = await running.ended(2)
    assert [decision.kind for decision in running.log.decisions].count(Kind.ALLOWED) == 2
    assert {decision.host for decision in ended} == {ALLOWED}
    assert all(decision.bytes_up > 0 and decision.bytes_down > 0 for decision in ended)
    assert ALLOWED in lab.queries()


CURL = ["curl", "--silent", "--show-error", "--fail", "--max-time", "60"]


@pytest.mark.parametrize("url", [f"https://{ALLOWED}/echo", f"http://{ALLOWED}/echo"])
@in_lab
async def test_curl_gets_through_as_it_is(lab: Lab, url: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    async with proxy() as running:
        environment = {"PATH": os.environ["PATH"], "CURL_CA_BUNDLE": str(lab.ca), **proxy_environment(running.port)}

        def run(*argv: str) -> subprocess.CompletedProcess[bytes]:
            return subprocess.run([*CURL, *argv], env=environment, capture_output=True, check=False)

        assert b'"tag": "public"' in (await away(run, url)).stdout
        assert b'"tag": "public"' in (await away(run, "--data", "x" * 100_000, url)).stdout
        assert b"Content-Length" in (await away(run, "--head", url)).stdout.title()
        assert b"403" in (await away(run, url.replace("allowed", "other"))).stderr
        assert running.reasons() == ["not_allowed"]
