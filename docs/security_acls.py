"""Writes docs/security-acls.md from the table of handlers and their guards: `python -m docs.security_acls`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from broker.exchange.authorisation import NOTHING
from broker.guards import HandlerGuards
from broker.handlers import APIS
from broker.requests.api import Api
from broker.security.authentication import ALLOWED
from protocol.api_key import ApiKey

PAGE = Path(__file__).with_name("security-acls.md")

INTRODUCTION = """\
# Access control

<!-- Written by `python -m docs.security_acls` from the table of handlers and their guards; edit those. -->

With `authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer` every request is checked against
the access control entries in the cluster's metadata, which `kafka-acls` and every admin client set and list as with
Apache Kafka. `super.users=User:alice;User:bob` may do everything; `allow.everyone.if.no.acl.found=true` allows
everybody what no entry is about. Set the same options on every node, controllers too, and make the brokers' own
principal a super user, or allow it CLUSTER_ACTION: brokers ask each other as any client does.

- An entry that denies wins over all that allow, however specific they are.
- READ, WRITE, DELETE and ALTER allow DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS; denying them denies no
  more.
- Names are literal, `*`, or prefixes; hosts are literal or `*`; `User:*` is everybody.
- Decisions are remembered for a connection until any entry changes, and then made anew; a fetch session is checked at
  each fetch.
- Clients are let in only after all entries are loaded.

The logger `audit` logs each decision, as Kafka's does: a denial at info, a permission at debug. A permission to change
the cluster is logged each time, a permission to read or write the first time for each connection and resource. A
request has 100 lines at most, and a second 500; the rest are counted, and logged when the second is over in a line for
each client, operation and resource type.

A pattern that a member of a consumer group subscribes with matches those topics that it may describe at that moment;
patterns are matched anew as topics come, and each `group.consumer.regex.refresh.interval.ms`. Members with the same
pattern share what it matches, whoever had it matched last; to read a topic takes READ all the same.

## What an API asks for

Before a client of a listener with SASL has authenticated, only what is marked is answered, in its turn; all else closes
the connection. Where several operations are named, the text says which one is asked for when. *The request* is refused
as a whole. Who has no entry is told by no version of any of these whether what it names is there; a test asks all of
them, of a broker that has it and of one that has not.

| key | API | versions | before authentication | requires | how it is asked for |
| --- | --- | --- | --- | --- | --- |
"""


BEFORE = frozenset().union(*ALLOWED.values())
"""The APIs that are answered to who has not authenticated."""


BY_THEMSELVES = {
    ApiKey.PRODUCE: "Appends to the topics to which the client may write; a transaction needs WRITE on its id before",
    ApiKey.FETCH: "For each topic of the request or its session; brokers for all",
    ApiKey.CREATE_DELEGATION_TOKEN: "For the owner of the token, unless it is the client itself",
    ApiKey.DESCRIBE_DELEGATION_TOKEN: "For each token that the client neither owns nor may renew, or for its owner",
}
"""APIs that ask without a guard."""


def page() -> str:
    """Returns the whole page."""
    return INTRODUCTION + "\n".join([*_rows(), ""])


def _rows() -> Iterator[str]:
    guards = HandlerGuards()
    for api in sorted(APIS, key=lambda api: api.key):
        versions, before = "{}–{}".format(*api.versions), "yes" if api.key in BEFORE else ""
        yield f"| {int(api.key)} | {api.key.name} | {versions} | {before} | {api.requires} | {_how(api, guards)} |"


def _how(api: Api, guards: HandlerGuards) -> str:
    if api.requires == NOTHING and guards.find(api.key) is None:
        return "nobody is asked"
    if api.requires.of_cluster is not None:
        return "for the request"
    guard = guards.find(api.key)
    text = BY_THEMSELVES[api.key] if guard is None else inspect.getdoc(guard)
    return " ".join((text or "for each resource that is named").split()).rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
