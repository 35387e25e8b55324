"""The filter of containers says the same as bubblewrap's."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from securebench.sandboxes import _seccomp
from securebench.sandboxes._docker.seccomp import ALLOWED, profile
from securebench.sandboxes.base import Network


def _rules(network: Network, name: str) -> list[dict[str, Any]]:
    return [rule for rule in json.loads(profile(network))["syscalls"] if name in rule["names"]]


def _verdict(network: Network, family: int) -> str:
    """What a kernel with this profile does to socket(family)."""
    tests = {"SCMP_CMP_EQ": family.__eq__, "SCMP_CMP_GT": family.__gt__}
    found = [
        rule["action"] for rule in _rules(network, "socket") if tests[rule["args"][0]["op"]](rule["args"][0]["value"])
    ]
    assert len(found) == 1, "rules must not overlap"
    return str(found[0])


def test_nothing_bubblewrap_refuses_is_allowed() -> None:
    conditional = {"socket", "socketpair", "clone", "personality", "prlimit64"}
    assert not set(ALLOWED) & (set(_seccomp.DENIED) | set(_seccomp.ABSENT) | conditional)
    assert len(ALLOWED) == len(set(ALLOWED))


def test_what_is_not_named_is_refused() -> None:
    document = json.loads(profile(Network.NONE))
    assert document["defaultAction"] == "SCMP_ACT_ERRNO"
    assert all(not entry["subArchitectures"] for entry in document["archMap"])


@pytest.mark.parametrize("family", [*range(50), 0x1_0000_0001, 0x1_0000_0028])
def test_families_are_an_allow_list(family: int) -> None:
    allowed = {Network.NONE: {socket.AF_UNIX}, Network.LOOPBACK: {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}}
    for network, families in allowed.items():
        expected = "SCMP_ACT_ALLOW" if family in families else "SCMP_ACT_ERRNO"
        assert _verdict(network, family) == expected


def test_namespaces_cannot_be_made_by_clone() -> None:
    (rule,) = _rules(Network.NONE, "clone")
    assert rule["args"][0] == {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 0x7E020000, "valueTwo": 0}
    assert _rules(Network.NONE, "clone3")[0]["errnoRet"] == 38


def test_chroot_needs_its_capability() -> None:
    assert not _rules(Network.NONE, "chroot")
    assert b'"chroot"' in profile(Network.NONE, frozenset({"SYS_CHROOT"}))
