"""The canonical spelling of addresses, so that they can be compared as text.

Source: java.net.InetAddress, by which Kafka compares addresses: an IPv4 address from an IPv6 socket is the IPv4
address, and `::1` is `0:0:0:0:0:0:0:1`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.lazy import lazy

if TYPE_CHECKING:
    import ipaddress
else:  # with the first address of IPv6
    ipaddress = lazy("ipaddress")


def canonical(host: str) -> str:
    """Returns an address in its canonical spelling, without a scope (`%eth0`). Other text stays unchanged."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)
