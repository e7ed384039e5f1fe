"""One spelling for each address, so that addresses can be compared as text.

Source: java.net.InetAddress, in whose form Kafka compares them: an IPv4 address that came by an IPv6 socket is that
IPv4 address, and `::1` is `0:0:0:0:0:0:0:1`.
"""

from __future__ import annotations

import socket
from typing import Final

MAPPED: Final = "::ffff:"


def canonical(host: str) -> str:
    """Returns an address in its canonical spelling, without a scope (`%eth0`); other text stays as it is."""
    if ":" not in host:
        return host
    try:
        address = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host.partition("%")[0]))
    except (OSError, UnicodeError):
        return host
    if address.startswith(MAPPED) and "." in address:
        return address.removeprefix(MAPPED)
    return address
