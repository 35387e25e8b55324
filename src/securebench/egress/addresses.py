"""Which addresses may be dialled. Decides on values only; nothing is resolved here.

- Every address a name has must pass; one that does not refuses the name.
- Only global unicast passes: an IPv4 address outside every special range, an IPv6 address in 2000::/3 outside every
  special range.
- Addresses that carry an IPv4 address inside are refused (mapped, 6to4, Teredo), except those of NAT64's well-known
  prefix, which hosts without IPv4 cannot do without: there the address inside must pass.
- Services that clouds keep for their own guests are refused, whatever range they lie in.
- For a name the operator declared private, the ranges meant for private networks and this host itself pass too;
  link-local and cloud services never do.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from securebench.egress.decisions import Reason, Refused

Address = IPv4Address | IPv6Address

_CLOUD_SERVICES = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "168.63.129.16",  # a public address, but Azure's own service on every guest
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:42::42",
    )
)
_PRIVATE_V4 = tuple(map(IPv4Network, ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_SPECIAL_V4 = (
    *_PRIVATE_V4,
    *map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "169.254.0.0/16",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    ),
)
_PRIVATE_V6 = (IPv6Network("::1/128"), IPv6Network("fc00::/7"))
_GLOBAL_V6 = IPv6Network("2000::/3")
_SPECIAL_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")


def may_be_dialled(address: Address, private: bool = False) -> bool:
    """Whether the proxy may connect to this address, for a name that was declared `private` or was not."""
    if address in _CLOUD_SERVICES:
        return False
    if isinstance(address, IPv4Address):
        if private and any(address in network for network in _PRIVATE_V4):
            return True
        return not any(address in network for network in _SPECIAL_V4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return may_be_dialled(IPv4Address(int(address) & 0xFFFF_FFFF))
    if private and any(address in network for network in _PRIVATE_V6):
        return True
    return address in _GLOBAL_V6 and not any(address in network for network in _SPECIAL_V6)


def vetted(texts: Iterable[str], private: bool = False) -> tuple[Address, ...]:
    """All addresses of a name, each once, in their order. Raises Refused when one may not be dialled."""
    try:
        addresses = tuple(dict.fromkeys(ip_address(text) for text in texts))
    except ValueError:
        raise Refused(Reason.PRIVATE_ADDRESS) from None
    if not addresses:
        raise Refused(Reason.UNRESOLVABLE)
    if not all(may_be_dialled(address, private) for address in addresses):
        raise Refused(Reason.PRIVATE_ADDRESS)
    return addresses
