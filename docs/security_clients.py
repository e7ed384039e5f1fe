"""Writes docs/security-clients.md from the security matrix of the tests: `python -m docs.security_clients`."""

from __future__ import annotations

from pathlib import Path

from tests.interop.security_matrix import matrix, refusals

PAGE = Path(__file__).with_name("security-clients.md")

INTRODUCTION = """\
# Clients and security

<!-- Written by `python -m docs.security_clients` from tests/interop/security_matrix.py; edit that. -->

Which client gets in by which way ([security.md](security.md)): it produces and consumes, at a broker that asks an
authorizer. `make test-security` runs each cell. kcat is that of Debian 12, whose librdkafka cannot fetch a token; Java
clients show one by a handler class of their user's, the tools by Kafka's own.

"""

REFUSED = """
Each is refused where it should be, and says so in its exception, its error callback, its log or its output. The words
are a part of what it says. The broker logs a line for each connection that it closes over a refusal, and no trace; what
an authorizer refuses is a line of the logger `audit`.

By tickets of Kerberos (GSSAPI) come kcat, kafka-python, aiokafka and Java 4.3.1; `tests/interop/test_kerberos.py` has
them beside a KDC of its own, and their refusals ([security.md](security.md#tickets-of-kerberos)).
"""


def page() -> str:
    """Returns the whole page."""
    return INTRODUCTION + "".join(matrix()) + REFUSED + "".join(refusals())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
