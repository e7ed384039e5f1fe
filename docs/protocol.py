"""Writes docs/protocol.md from the table of handlers and the table of tested clients: `python -m docs.protocol`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from broker.requests.api import Apis
from tests.interop import matrix

PAGE = Path(__file__).with_suffix(".md")

INTRODUCTION = """\
# Protocol

<!-- Written by `python -m docs.protocol` from the table of handlers and the table of tested clients; edit those. -->

Odradek serves every version of an API that Apache Kafka ever served, from 0 to the newest stable one, so that clients
of any age connect. All versions of all messages, also of those that no handler serves yet, are in `protocol/messages/`.

## APIs

ApiVersions tells clients exactly this table, and answers itself in any version. What an API requires is what a client
has to be allowed to do where there is an authorizer ([access control](security-acls.md)).
"""

CONTROLLERS = """
## A controller's listener

Brokers and other controllers find these where `controller.listener.names` says: those of the quorum and of brokers'
registrations, and those of clients' requests that brokers forward in Envelopes.
"""

CLIENTS = """
## Clients

Each row is tested against a real broker process: it creates a topic, produces with every codec and every acks shown,
consumes from the start and from within, from a timestamp where it can, reads on after the broker was killed and started
again, and reads what every other row wrote. *As of* means that the client is told to believe in a broker of that age.
"""


def page() -> str:
    """Returns the whole page."""
    return "\n".join([INTRODUCTION, *_apis(APIS), CONTROLLERS, *_apis(CONTROLLER_APIS), CLIENTS, matrix.table()])


def _apis(apis: Apis) -> Iterator[str]:
    yield "| key | API | versions | what it does | what it requires |"
    yield "| --- | --- | --- | --- | --- |"
    for api in sorted(apis, key=lambda api: api.key):
        name, purpose = _header(apis.module_of(api.key))
        yield f"| {int(api.key)} | {name} | {api.versions.first}–{api.versions.last} | {purpose} | {api.requires} |"


def _header(module: str) -> tuple[str, str]:
    """Returns the name of an API and its purpose, from the first sentence of its module's docstring."""
    text = " ".join((sys.modules[module].__doc__ or "").split("\n\n")[0].split())
    match = re.match(r"(\w+) \(\d+\): (.*?)\.?$", text)
    assert match, f"{module}: no docstring of the form `Name (key): what it does`"
    return match[1], match[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
