"""A filter of a listening socket by which the kernel does not hear certain addresses ask for a connection.

It is a program for the kernel's classic packet filter, and sees a segment from its TCP header on. Whoever is not heard
asks again, a second later for the first time, as it would if the segment had been lost. The filter is about segments
that ask for a connection alone, since a connection that is accepted inherits it.
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
"""Whether the kernel has such filters."""

SO_ATTACH_FILTER: Final = 26
SO_DETACH_FILTER: Final = 27

LOAD_BYTE, LOAD_WORD, AND, JUMP, JUMP_IF_EQUAL, RETURN = 0x30, 0x20, 0x54, 0x05, 0x15, 0x06
FROM_IP_HEADER: Final = 0xFFF00000
"""Added to an offset, counts it from the header of IP (SKF_NET_OFF)."""
WHOLE, NOTHING = 0xFFFFFFFF, 0
"""How much of the segment is let through."""

TCP_FLAGS_AT: Final = 13
SYN, SYN_OR_ACK = 0x02, 0x12
VERSION_MASK, IPV4 = 0xF0, 0x40
IPV4_SOURCE_AT, IPV6_SOURCE_AT = 12, 8
WORD_BYTES: Final = 4
IPV4_BYTES: Final = 4
MAPPED: Final = bytes(10) + b"\xff\xff"
"""Before an IPv4 address that a socket of IPv6 has (RFC 4291, 2.5.5.2)."""


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Returns a `struct sock_filter`; the last two are how many instructions a condition skips."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def packed(ip: str) -> bytes:
    """Returns the four or sixteen bytes of an address, as a segment from it has them."""
    if ":" not in ip:
        return socket.inet_pton(socket.AF_INET, ip)
    address = socket.inet_pton(socket.AF_INET6, ip.partition("%")[0])
    return address[len(MAPPED) :] if address.startswith(MAPPED) else address


def unheard(address: bytes, source_at: int) -> list[bytes]:
    """Returns instructions that let nothing through from an address, and go on for any other."""
    steps: list[bytes] = []
    for at in range(0, len(address), WORD_BYTES):
        left = 2 * ((len(address) - at) // WORD_BYTES - 1) + 1  # the words after this one, and the return
        (word,) = struct.unpack_from(">I", address, at)
        steps += [
            instruction(LOAD_WORD, FROM_IP_HEADER + source_at + at),
            instruction(JUMP_IF_EQUAL, word, if_false=left),
        ]
    return [*steps, instruction(RETURN, NOTHING)]


def program(ips: Collection[str]) -> bytes:
    """Returns the filter that does not let these addresses ask for connections."""
    addresses = [packed(ip) for ip in ips]
    of_ipv4 = [step for one in addresses if len(one) == IPV4_BYTES for step in unheard(one, IPV4_SOURCE_AT)]
    of_ipv6 = [step for one in addresses if len(one) != IPV4_BYTES for step in unheard(one, IPV6_SOURCE_AT)]
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
    """Has the kernel filter what comes to a socket, in place of any filter before. Raises OSError."""
    steps = array("B", filter_program)
    address, size_bytes = steps.buffer_info()
    count = size_bytes // len(instruction(RETURN, WHOLE))
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", count, address))


def detach(sock: socket.socket) -> None:
    """Has the kernel let everything through again. Raises OSError."""
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
