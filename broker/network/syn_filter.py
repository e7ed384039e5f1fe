"""A filter of a listening socket: the kernel drops requests to connect (SYN) from certain addresses.

The filter is a program for the kernel's classic packet filter, and sees a segment from its TCP header on. A blocked
client's kernel asks again a second later, as if the segment had been lost. The filter drops only segments that ask for
a connection, because an accepted connection inherits it.

Source: linux/filter.h, tcp(7), socket(7) (SO_ATTACH_FILTER).
"""

from __future__ import annotations

import socket
import struct
import sys
from array import array
from collections.abc import Collection
from typing import Final

IS_KNOWN: Final = sys.platform == "linux"
"""True if the kernel has filters for listening sockets."""

SO_ATTACH_FILTER: Final = 26
SO_DETACH_FILTER: Final = 27

LOAD_BYTE, LOAD_WORD, AND, JUMP, JUMP_IF_EQUAL, RETURN = 0x30, 0x20, 0x54, 0x05, 0x15, 0x06
FROM_IP_HEADER: Final = 0xFFF00000
"""Added to an offset, this counts from the IP header (SKF_NET_OFF)."""
WHOLE, NOTHING = 0xFFFFFFFF, 0
"""The bytes of the segment that pass."""

TCP_FLAGS_AT: Final = 13
SYN, SYN_OR_ACK = 0x02, 0x12
VERSION_MASK, IPV4 = 0xF0, 0x40
IPV4_SOURCE_AT, IPV6_SOURCE_AT = 12, 8
WORD_BYTES: Final = 4
IPV4_BYTES: Final = 4
MAPPED: Final = bytes(10) + b"\xff\xff"
"""Prefix of an IPv4 address in a socket of IPv6 (RFC 4291, 2.5.5.2)."""


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Returns a `struct sock_filter`; the last two arguments are the instructions that a condition skips."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def packed(ip: str) -> bytes:
    """Returns the four or sixteen bytes of an address, as a segment carries them."""
    if ":" not in ip:
        return socket.inet_pton(socket.AF_INET, ip)
    address = socket.inet_pton(socket.AF_INET6, ip.partition("%")[0])
    return address[len(MAPPED) :] if address.startswith(MAPPED) else address


def dropped(address: bytes, source_at: int) -> list[bytes]:
    """Returns instructions that drop segments from an address, and continue for any other address."""
    steps: list[bytes] = []
    for at in range(0, len(address), WORD_BYTES):
        left = 2 * ((len(address) - at) // WORD_BYTES - 1) + 1  # the words that follow, and the return
        (word,) = struct.unpack_from(">I", address, at)
        steps += [
            instruction(LOAD_WORD, FROM_IP_HEADER + source_at + at),
            instruction(JUMP_IF_EQUAL, word, if_false=left),
        ]
    return [*steps, instruction(RETURN, NOTHING)]


def program(ips: Collection[str]) -> bytes:
    """Returns the filter that drops requests to connect from these addresses."""
    addresses = [packed(ip) for ip in ips]
    of_ipv4 = [step for address in addresses if len(address) == IPV4_BYTES for step in dropped(address, IPV4_SOURCE_AT)]
    of_ipv6 = [step for address in addresses if len(address) != IPV4_BYTES for step in dropped(address, IPV6_SOURCE_AT)]
    passed = instruction(RETURN, WHOLE)
    return b"".join(
        (
            instruction(LOAD_BYTE, TCP_FLAGS_AT),
            instruction(AND, SYN_OR_ACK),
            instruction(JUMP_IF_EQUAL, SYN, if_true=1),
            passed,
            instruction(LOAD_BYTE, FROM_IP_HEADER),
            instruction(AND, VERSION_MASK),
            instruction(JUMP_IF_EQUAL, IPV4, if_true=1),
            instruction(JUMP, len(of_ipv4) + 1),
            *of_ipv4,
            passed,
            *of_ipv6,
            passed,
        )
    )


def attach(sock: socket.socket, filter_program: bytes) -> None:
    """Makes the kernel filter a socket's segments; replaces any earlier filter. Raises OSError."""
    steps = array("B", filter_program)
    address, size_bytes = steps.buffer_info()
    count = size_bytes // len(instruction(RETURN, WHOLE))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", count, address))


def detach(sock: socket.socket) -> None:
    """Removes the filter of a socket. Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
