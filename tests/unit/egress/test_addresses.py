"""Only addresses of the public internet are dialled, and only where all of a name's are such."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from securebench.egress.addresses import may_be_dialled, vetted
from securebench.egress.decisions import Reason, Refused

_NAT64 = IPv6Network("64:ff9b::/96")
PUBLIC = ["93.184.216.34", "1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "223.255.255.254", "2606:2800:220::34"]
PUBLIC += ["2a00:1450:4001:80b::200e", "2001:4860:4860::8888", "64:ff9b::5db8:d822"]
PRIVATE = ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255"]
PRIVATE += ["127.0.0.1", "127.255.255.254", "::1", "fc00::1", "fd12:3456::1"]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "169.254.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "100.100.100.200",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:1",
    "64:ff9b::a83f:8110",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:5db8:d822::1",
    "3fff::1",
    "5f00::1",
    "fe80::1",
    "fe80::1%1",
    "2606:2800:220::34%1",
    "fec0::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_dialled(text: str) -> None:
    assert may_be_dialled(ip_address(text))


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses_need_the_operators_word(text: str) -> None:
    assert not may_be_dialled(ip_address(text))
    assert may_be_dialled(ip_address(text), private=True)


@pytest.mark.parametrize("text", NEVER)
def test_some_addresses_are_never_dialled(text: str) -> None:
    assert not may_be_dialled(ip_address(text))
    assert not may_be_dialled(ip_address(text), private=True)


@given(st.ip_addresses())
def test_what_the_standard_library_knows_as_special_is_not_dialled(address: IPv4Address | IPv6Address) -> None:
    special = address.is_private or address.is_multicast or address.is_reserved or address.is_link_local
    if special and not (isinstance(address, IPv6Address) and address in _NAT64):
        assert not may_be_dialled(address)


@given(st.ip_addresses(v=4))
def test_an_address_inside_nat64_is_judged_as_itself(inner: IPv4Address) -> None:
    outer = IPv6Address(int(_NAT64.network_address) | int(inner))
    assert may_be_dialled(outer) is may_be_dialled(inner)


def test_one_bad_address_refuses_the_name() -> None:
    assert [str(address) for address in vetted(["1.1.1.1", "8.8.8.8", "1.1.1.1"])] == ["1.1.1.1", "8.8.8.8"]
    for texts in (["1.1.1.1", "127.0.0.1"], ["::1", "1.1.1.1"], ["1.1.1.1", "not an address"], ["1.1.1.1", "127.1"]):
        with pytest.raises(Refused) as refused:
            vetted(texts)
        assert refused.value.reason is Reason.PRIVATE_ADDRESS


def test_a_name_without_addresses_is_unresolvable() -> None:
    with pytest.raises(Refused) as refused:
        vetted([])
    assert refused.value.reason is Reason.UNRESOLVABLE
