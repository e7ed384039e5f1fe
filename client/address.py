"""The address of a broker."""

from __future__ import annotations

from typing import NamedTuple

from protocol.numbers import port_number


class Address(NamedTuple):
    """A host, as a name or an IP address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Returns the address in HOST:PORT, as in bootstrap.servers, with an IPv6 address in brackets. Raises
        ValueError with the reason.
        """
        host, _, port = text.strip().rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        number = port_number(port)
        if not bare or not number or (":" in bare) != host.startswith("["):
            raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092")
        return cls(bare, number)
