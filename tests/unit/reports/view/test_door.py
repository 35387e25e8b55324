"""Who is let in to the viewer, and who is not."""

from __future__ import annotations

import pytest

from securebench.reports.view.door import Door, Refusal

TOKEN = "k7_Zt-abc"
DOOR = Door(TOKEN, 8080)
HOST = (b"host", b"127.0.0.1:8080")


def asked(target: str, method: bytes = b"GET", fields: tuple[tuple[bytes, bytes], ...] = (HOST,)) -> tuple[str, ...]:
    return DOOR.admit(method, target.encode(), list(fields))


def refused(target: str, method: bytes = b"GET", fields: tuple[tuple[bytes, bytes], ...] = (HOST,)) -> int:
    with pytest.raises(Refusal) as refusal:
        asked(target, method, fields)
    return refusal.value.status


@pytest.mark.parametrize(
    "target, parts",
    [("/", ("",)), ("/run/0a-f_/report", ("run", "0a-f_", "report")), ("/compare/a/", ("compare", "a", ""))],
)
def test_the_token_opens_plain_ways(target: str, parts: tuple[str, ...]) -> None:
    assert asked(f"/{TOKEN}{target}") == parts


@pytest.mark.parametrize("host", [b"127.0.0.1:8080", b"localhost:8080", b"LOCALHOST:8080", b"[::1]:8080"])
def test_this_machine_goes_by_these_names(host: bytes) -> None:
    assert asked(f"/{TOKEN}/", fields=((b"host", host),)) == ("",)


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        (b"evil.invalid",),
        (b"evil.invalid:8080",),
        (b"127.0.0.1",),
        (b"127.0.0.1:8081",),
        (b"localhost.evil.invalid:8080",),
        (b"127.0.0.1:8080", b"evil.invalid"),
        (b"127.0.0.1:8080@evil.invalid",),
        (b"0.0.0.0:8080",),
        (b"127.1:8080",),
    ],
)
def test_any_other_name_is_refused_even_with_the_token(hosts: tuple[bytes, ...]) -> None:
    assert refused(f"/{TOKEN}/", fields=tuple((b"host", host) for host in hosts)) == 403


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "",
        "*",
        f"/{TOKEN}",
        f"/{TOKEN[:-1]}/",
        f"/{TOKEN}x/",
        f"/{TOKEN.upper()}/",
        f"//{TOKEN}/",
        f"/x/{TOKEN}/",
        f"/{TOKEN}/../{TOKEN}/",
        f"/{TOKEN}/run/../../../../etc/passwd",
        f"/{TOKEN}/run/%2e%2e/report",
        f"/{TOKEN}/run/..%2f..%2fetc/report",
        f"/{TOKEN}/run/a\\b/report",
        f"/{TOKEN}/?x=1",
        f"/{TOKEN}/#x",
        f"http://127.0.0.1:8080/{TOKEN}/",
        f"/{TOKEN}/" + "a" * 101,
        f"/{TOKEN}/\x00",
    ],
)
def test_any_other_way_is_the_same_nothing(target: str) -> None:
    assert refused(target) == 404


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"CONNECT", b"TRACE", b"get"])
def test_methods_that_could_change_something_are_refused(method: bytes) -> None:
    assert refused(f"/{TOKEN}/", method) == 405


@pytest.mark.parametrize("field", [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")])
def test_a_request_with_a_body_is_refused(field: tuple[bytes, bytes]) -> None:
    assert refused(f"/{TOKEN}/", fields=(HOST, field)) == 400
