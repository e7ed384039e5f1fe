"""Writes docs/security-acls.md from the table of APIs: `python -m docs.security_acls`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from broker.handlers import APIS
from broker.security.authentication import ALLOWED

PAGE = Path(__file__).with_name("security-acls.md")

INTRODUCTION = """\
# Access control

<!-- Written by `python -m docs.security_acls` from the table of APIs; edit that. -->

With `authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer` every request is checked against
the access control entries in the cluster's metadata, which `kafka-acls` and every admin client set and list as with
Apache Kafka. `super.users=User:alice;User:bob` names users who may do everything. With
`allow.everyone.if.no.acl.found=true`, a resource without an entry is open to every client. Set the same options on
every node, including controllers, and make the brokers' principal a super user, or allow it CLUSTER_ACTION: requests
between brokers are authorized like requests of clients.

- A DENY entry wins over all ALLOW entries, however specific they are.
- An ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE, and an ALLOW of ALTER_CONFIGS implies DESCRIBE_CONFIGS. A
  DENY implies no other operation.
- Names are literal, `*`, or prefixes; `User:*` matches every user. A host is an address, `*`, or from metadata.version
  4.4-IV1 on a network such as `10.0.0.0/8` or `2001:db8::/32` (KIP-1276).
- The broker caches decisions for a connection until any entry changes; a fetch session is checked at each fetch.
- The broker accepts clients only after all entries are loaded.

The logger `audit` logs each decision, as Kafka's does: a denial at info, a permission at debug. A permission to change
the cluster is logged each time; a permission to read or write only the first time for each connection and resource. A
request has at most 100 lines, and a second at most 500. Further decisions are counted, and logged at the end of the
second, in one line for each client, operation and resource type.

A pattern subscription of a consumer group matches the topics that its member may describe at that moment. Patterns are
matched again when topics are created, and every `group.consumer.regex.refresh.interval.ms`. Members with the same
pattern share one result, whichever member it was matched for; reading a topic still requires READ.

## Required operations by API

On a listener with SASL, an unauthenticated client gets answers only to the marked APIs, in the order of the
authentication; any other request closes the connection. If an API has several operations, the last column says which
operation is required when. *For the request*, *for the group* and *for the transactional id* mean that a
denial rejects the whole request, *for each* that it rejects one entry. No version of any API
reveals to a client without an entry whether a resource exists; a test sends all of them to a broker that has the
resource and to a broker that doesn't.

| key | API | versions | before authentication | requires | how it is authorized |
| --- | --- | --- | --- | --- | --- |
"""


BEFORE = frozenset().union(*ALLOWED.values())
"""The APIs that unauthenticated clients may call."""


def page() -> str:
    """Returns the whole page."""
    return INTRODUCTION + "\n".join([*_rows(), ""])


def _rows() -> Iterator[str]:
    for api in sorted(APIS, key=lambda api: api.key):
        versions, before = "{}–{}".format(*api.versions), "yes" if api.key in BEFORE else ""
        yield f"| {int(api.key)} | {api.key.name} | {versions} | {before} | {api.authorize} | {api.authorize.how} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
