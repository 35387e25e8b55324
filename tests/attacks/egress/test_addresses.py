"""B07: an allowed name that leads inwards, at once, later, or by a redirect."""

from __future__ import annotations

import uuid

import pytest
from tests.attacks.egress import weak
from tests.attacks.egress.clients import ALLOWED, away, body, plain_get, proxy, status, tls_get
from tests.attacks.egress.lab import Lab, in_lab
from tests.attacks.egress.world import DEAD, LOOP, METADATA, PUBLIC

from securebench.egress.resolver import system_resolver

INWARDS = ("private", "meta", "loop", "loop6", "mapped", "mixed", "zero")


@pytest.mark.parametrize("name", INWARDS)
@in_lab
async def test_a_name_that_leads_inwards_is_refused(lab: Lab, name: str) -> None:
    host, before = f"{name}.lab.test", len(lab.hits("tcp"))
    async with proxy([host]) as running:
        assert (await away(tls_get, running.port, lab.ca, host)).startswith(b"403")
        assert status(await away(plain_get, running.port, host)) == 403
    assert running.reasons() == ["private_address"] * 2
    assert len(lab.hits("tcp")) == before


@pytest.mark.parametrize(
    "name, tag", [("private", "private"), ("meta", "metadata"), ("loop", "loop"), ("loop6", "loop"), ("mapped", "loop")]
)
@in_lab
async def test_control_where_addresses_are_not_vetted_it_is_reached(lab: Lab, name: str, tag: str) -> None:
    async def worst_first(host: str) -> tuple[str, ...]:
        return tuple(sorted(await system_resolver(host), key=PUBLIC.__eq__))

    weak.vets_no_address()
    async with proxy([f"{name}.lab.test"], resolve=worst_first) as running:
        assert body(await away(plain_get, running.port, f"{name}.lab.test"))["tag"] == tag


@in_lab
async def test_control_where_one_address_is_vetted_another_is_reached(lab: Lab) -> None:
    async def ordered(_: str) -> tuple[str, ...]:
        return (PUBLIC, LOOP)

    weak.dials_the_last_address_unvetted()
    async with proxy(["mixed.lab.test"], resolve=ordered) as running:
        assert body(await away(plain_get, running.port, "mixed.lab.test"))["tag"] == "loop"


@pytest.mark.parametrize("name, tag", [("private", "private"), ("loop", "loop")])
@in_lab
async def test_a_private_mirror_is_reached_when_the_operator_says_so(lab: Lab, name: str, tag: str) -> None:
    host = f"{name}.lab.test"
    async with proxy([host, "meta.lab.test"], private=[host, "meta.lab.test"]) as running:
        assert body(await away(tls_get, running.port, lab.ca, host))["tag"] == tag
        assert (await away(tls_get, running.port, lab.ca, "meta.lab.test")).startswith(b"403")  # never that one


@pytest.mark.parametrize("flip, target", [("loop", LOOP), ("meta", METADATA)])
@in_lab
async def test_a_zone_that_flips_is_believed_once_and_vetted_each_time(lab: Lab, flip: str, target: str) -> None:
    host = f"{flip}-{uuid.uuid4().hex}.rebind.test"
    before = [hit for hit in lab.hits("tcp") if hit["address"] == target]
    async with proxy([host]) as running:
        assert body(await away(plain_get, running.port, host))["tag"] == "public"
        assert status(await away(plain_get, running.port, host)) == 403
        assert (await away(tls_get, running.port, lab.ca, host)).startswith(b"403")
    assert running.reasons() == ["private_address"] * 2
    assert [hit for hit in lab.hits("tcp") if hit["address"] == target] == before


@pytest.mark.parametrize("flip, tag", [("loop", "loop"), ("meta", "metadata")])
@in_lab
async def test_control_where_the_name_is_resolved_again_to_dial_the_flip_wins(lab: Lab, flip: str, tag: str) -> None:
    host = f"{flip}-{uuid.uuid4().hex}.rebind.test"
    weak.resolves_again_to_dial(host)
    async with proxy([host]) as running:
        assert body(await away(plain_get, running.port, host))["tag"] == tag


@pytest.mark.parametrize(
    "inwards",
    [f"http://{METADATA}/latest/meta-data", "http://meta.lab.test/", "http://loop.lab.test/", "http://localhost/"],
)
@in_lab
async def test_a_redirect_inwards_is_handed_back_and_refused_when_followed(lab: Lab, inwards: str) -> None:
    before = len(lab.hits("metadata")) + len(lab.hits("loop"))
    async with proxy([ALLOWED, "meta.lab.test", "loop.lab.test"]) as running:
        reply = await away(plain_get, running.port, ALLOWED, f"/redirect?to={inwards}")
        assert status(reply) == 302
        assert inwards.encode() in reply
        host = inwards.split("/")[2]
        assert status(await away(plain_get, running.port, host, "/")) == 403
    assert len(lab.hits("metadata")) + len(lab.hits("loop")) == before


@in_lab
async def test_an_address_that_does_not_answer_leaves_the_others(lab: Lab) -> None:
    async def ordered(_: str) -> tuple[str, ...]:
        return (DEAD, PUBLIC)

    async with proxy(resolve=ordered) as running:
        assert body(await away(tls_get, running.port, lab.ca))["tag"] == "public"
        assert (await running.ended())[0].address == PUBLIC


@in_lab
async def test_a_name_without_an_answer_is_told_so(lab: Lab) -> None:
    async def dead(_: str) -> tuple[str, ...]:
        return (DEAD,)

    async with proxy(["nothing.example"]) as running:
        assert (await away(tls_get, running.port, lab.ca, "nothing.example")).startswith(b"502")
    assert running.reasons() == ["unresolvable"]
    assert not [name for name in lab.queries() if name.startswith("nothing.example.")]  # not beneath a search domain
    async with proxy(resolve=dead) as running:
        assert status(await away(plain_get, running.port)) == 502
    assert running.reasons() == ["unreachable"]


@in_lab
async def test_control_where_search_domains_are_tried_another_name_answers(lab: Lab) -> None:
    async with proxy(["nothing.example"], resolve=weak.look_up) as running:
        assert body(await away(plain_get, running.port, "nothing.example"))["tag"] == "public"
    assert "nothing.example.evil.test" in lab.queries()
