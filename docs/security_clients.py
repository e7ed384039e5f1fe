"""Writes docs/security-clients.md from the security matrix of the tests: `python -m docs.security_clients`."""

from __future__ import annotations

from pathlib import Path

from tests.interop.security_matrix import matrix, refusals

PAGE = Path(__file__).with_name("security-clients.md")

INTRODUCTION = """\
# Clients and security

<!-- Written by `python -m docs.security_clients` from tests/interop/security_matrix.py; edit that. -->

Which client works with which security protocol and mechanism ([security.md](security.md)): the client produces and
consumes at a broker with an authorizer. `make test-security` runs each cell. kcat is the version of Debian 12, whose
librdkafka can't fetch a token. Java clients get a token from a handler class of their own, the tools from Kafka's.

"""

REFUSED = """
The broker rejects each of these clients, and the client reports it in its exception, its error callback, its log or its
output; the cells quote a part of that text. The broker logs one line for each connection that it closes for this
reason, without a traceback; a denial by the authorizer is a line of the logger `audit`.

kcat, kafka-python, aiokafka and Java 4.3.1 authenticate with Kerberos (GSSAPI) too; `tests/interop/test_kerberos.py`
runs them and their rejections against a KDC of its own ([security.md](security.md#kerberos)).
"""


def page() -> str:
    """Returns the whole page."""
    return INTRODUCTION + "".join(matrix()) + REFUSED + "".join(refusals())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
