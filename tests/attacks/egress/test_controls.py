"""What is allowed works: otherwise a proxy that refuses everything would pass all the attacks."""

from __future__ import annotations

from tests.attacks.egress.clients import ALLOWED, away, body, plain_get, proxy, status, tls_get
from tests.attacks.egress.lab import Lab, in_lab

from securebench.egress.decisions import Kind


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
