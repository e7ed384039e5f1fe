"""One spelling for each address, so that addresses can be compared as text.

Source: java.net.InetAddress, in whose form Kafka compares them: an IPv4 address that came by an IPv6 socket is that
IPv4 address, and `::1` is `0:0:0:0:0:0:0:1`.
"""

from __future__ import annotations


def canonical(host: str) -> str:
    """Returns an address in its canonical spelling, without a scope (`%eth0`); other text stays as it is."""
    if ":" not in host:
        return host
    from ipaddress import IPv6Address  # most brokers meet no such address

    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)
