"""Writes docs/security-clients.md from the security matrix of the tests: `python -m docs.security_clients`."""

from __future__ import annotations

from pathlib import Path

from tests.interop.clients.secured import CLIENTS
from tests.interop.security_matrix import WAYS, tables

PAGE = Path(__file__).with_name("security-clients.md")

INTRODUCTION = """\
# Clients and security

<!-- Written by `python -m docs.security_clients` from tests/interop/security_matrix.py; edit that. -->

Each of {clients} produces and consumes in each of these ways ([security.md](security.md)), against a broker that asks an
authorizer:

{ways}

And each is refused where it should be. This is what it says then, in its own words, as a part of its exception, its error
callback or its output.
"""


def page() -> str:
    """Returns the whole page."""
    ways = "\n".join(f"- {way.name}" for way in WAYS)
    clients = ", ".join(CLIENTS)
    return INTRODUCTION.format(clients=clients, ways=ways) + "".join(tables([*CLIENTS]))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
