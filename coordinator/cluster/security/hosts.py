"""The hosts of access control entries: any host, one address, or a network in CIDR notation (KIP-1276).

Source: Kafka's StandardAuthorizerData, CidrUtils and AclControlManager, and SubnetUtils of Apache Commons Net.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.cluster.security.acl import WILDCARD
from protocol.addresses import canonical
from protocol.lazy import lazy

if TYPE_CHECKING:
    import ipaddress
else:  # with the first address of IPv6
    ipaddress = lazy("ipaddress")

CIDR_METADATA_VERSION: Final = 32
"""The metadata.version from which a new entry may have a network (4.4-IV1)."""

IPV4_BITS: Final = 32
IPV6_BITS: Final = 128
IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
IPV4_NETWORK: Final = re.compile(rf"({IPV4.pattern})/(\d{{1,2}})", re.ASCII)
PREFIX_LENGTH: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)
SCOPE: Final = re.compile(r"%\d+\Z", re.ASCII)

HOSTS_KEPT: Final = 65_536
"""Networks and addresses that stay parsed. A decision reads each entry of a resource in a fraction of a microsecond; to
parse one takes up to thirty."""


class Network(NamedTuple):
    """A range of addresses of IPv4 or IPv6, as numbers."""

    bits: int
    first: int
    last: int


def matches(pattern: str, host: str) -> bool:
    """True if the host of an entry is any host, this address, or a network that contains it. `host` is in canonical
    spelling.
    """
    if "/" not in pattern:
        return pattern in (WILDCARD, host) or (":" in pattern and _canonical(pattern) == host)
    network, address = _network(pattern), _address(host)
    if network is None or address is None:
        return False
    bits, number = address
    return bits == network.bits and network.first <= number <= network.last


def parse_network(pattern: str) -> Network:
    """Returns the network of a text in CIDR notation. Raises ValueError."""
    if ":" in pattern:
        address, _, prefix = pattern.partition("/")
        if PREFIX_LENGTH.fullmatch(prefix) is None:
            raise ValueError(f"Could not parse [{pattern}] - invalid prefix length")
        length, bits = int(prefix), IPV6_BITS
        if not 0 <= length <= bits:
            raise ValueError(f"Could not parse [{pattern}] - prefix length must be between 0 and {bits}")
        number = _parse_ipv6(address)
    else:
        match = IPV4_NETWORK.fullmatch(pattern)
        if match is None:
            raise ValueError(f"Could not parse [{pattern}]")
        length, bits, number = int(match[6]), IPV4_BITS, _parse_ipv4(match[1])
        _check_range(length, bits)
    others = (1 << bits - length) - 1
    return Network(bits, number & ~others, number | others)


def _parse_ipv4(text: str) -> int:
    match = IPV4.fullmatch(text)
    if match is None:
        raise ValueError(f"Could not parse [{text}]")
    number = 0
    for part in match.groups():
        octet = int(part)
        _check_range(octet, 255)
        number = number << 8 | octet
    return number


def _check_range(number: int, last: int) -> None:
    if number > last:
        raise ValueError(f"Value [{number}] not in range [0,{last}]")


def _parse_ipv6(text: str) -> int:
    """Returns the number of an address, which may have a numeric scope or be in brackets, as java.net.InetAddress reads
    it. Raises ValueError.
    """
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        address = ipaddress.IPv6Address(SCOPE.sub("", bare))
    except ValueError:
        raise ValueError(f"Could not parse [{text}]") from None
    if address.scope_id is not None:
        raise ValueError(f"Could not parse [{text}]")
    if address.ipv4_mapped is not None:
        raise ValueError(f"Could not parse [{text}] - not an IPv6 address")
    return int(address)


_canonical = lru_cache(HOSTS_KEPT)(canonical)


@lru_cache(HOSTS_KEPT)
def _network(pattern: str) -> Network | None:
    """Returns the network of an entry; None if it isn't one, because it was stored before networks had a meaning."""
    try:
        return parse_network(pattern)
    except ValueError:
        return None


@lru_cache(HOSTS_KEPT)
def _address(host: str) -> tuple[int, int] | None:
    """Returns the number of bits and the number of a client's address; None if the host is not an address."""
    try:
        return (IPV6_BITS, _parse_ipv6(host)) if ":" in host else (IPV4_BITS, _parse_ipv4(host))
    except ValueError:
        return None
