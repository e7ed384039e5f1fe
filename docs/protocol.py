"""Writes docs/protocol.md from the table of handlers and the table of tested clients: `python -m docs.protocol`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from broker.dispatch.api import Apis
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from tests.interop import matrix

PAGE = Path(__file__).with_suffix(".md")

INTRODUCTION = """\
# Protocol

<!-- Written by `python -m docs.protocol` from the table of handlers and the table of tested clients; edit those. -->

Odradek serves every version of an API that Apache Kafka ever served, from 0 to the newest stable one, so that clients
of any age can connect. `protocol/messages/` has all versions of all messages that nodes and commands send.

## APIs

ApiVersions returns exactly this table, and is answered in any version. Keys from 19000 on are Odradek's own
([share-records.md](share-records.md)); Kafka's clients ignore them. The last column has the operations that an
authorizer must allow the client ([access control](security-acls.md)).
"""

CONTROLLERS = """
## A controller's listener

The listeners of `controller.listener.names` serve brokers and other controllers: the APIs of the quorum and of the
registration of brokers, and the requests of clients that brokers forward in Envelopes.
"""

CLIENTS = """
## Clients

Each row is tested with a real broker process: the client creates a topic, produces with every codec and acks shown,
consumes from the start and from an offset, from a timestamp if it can, continues after the broker was killed and
restarted, and reads the records of every other row. *As of* means that the client is configured for a broker of that
version.
"""


def page() -> str:
    """Returns the whole page."""
    return "\n".join([INTRODUCTION, *_apis(APIS), CONTROLLERS, *_apis(CONTROLLER_APIS), CLIENTS, matrix.table()])


def _apis(apis: Apis) -> Iterator[str]:
    yield "| key | API | versions | what it does | what it requires |"
    yield "| --- | --- | --- | --- | --- |"
    for api in sorted(apis, key=lambda api: api.key):
        name, purpose = _header(apis.module_of(api.key))
        yield f"| {int(api.key)} | {name} | {api.versions.first}–{api.versions.last} | {purpose} | {api.authorize} |"


def _header(module: str) -> tuple[str, str]:
    """Returns the name of an API and its purpose, from the first sentence of its module's docstring."""
    text = " ".join((sys.modules[module].__doc__ or "").split("\n\n")[0].split())
    match = re.match(r"(\w+) \(\d+\): (.*?)\.?$", text)
    assert match, f"{module}: no docstring of the form `Name (key): what it does`"
    return match[1], match[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
