"""Errors of commands, in words for the user, and the exit codes."""

from __future__ import annotations

import re
from typing import Final

from cli.exits import FAILED, MISUSED, UNREACHABLE
from protocol.errors import ErrorCode, KafkaError, error_code

ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`odradek topic list` lists them",
    ErrorCode.INVALID_REPLICATION_FACTOR: "`odradek cluster describe` shows the brokers; -r asks for fewer replicas",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "`odradek acl list` lists the permissions",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "`odradek acl list` lists the permissions",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "`odradek acl list` lists the permissions",
    ErrorCode.MESSAGE_TOO_LARGE: "`odradek topic alter TOPIC -c max.message.bytes=N` raises the limit",
    ErrorCode.KAFKA_STORAGE_ERROR: "`odradek doctor` finds full and lost disks",
    ErrorCode.NON_EMPTY_GROUP: "`odradek group members` lists its members; stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "`odradek group list` lists them",
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer (authorizer.class.name)",
}
"""A command or an option that helps, by the error that the cluster answered."""


OTHER_PROTOCOL: Final = "security.protocol must match the listener: SSL or SASL_SSL if it uses TLS, else neither"

NOT_KAFKA: Final = "another protocol than Kafka's"
"""A part of the reason if a peer breaks the protocol."""

HINTS: Final = (
    (
        "certificate is not valid for",
        "the certificate has another name: connect by that name, or set ssl.endpoint.identification.algorithm=none",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "ssl.truststore.location (ssl.ca.location) must name a file of trusted authorities"),
    ("WRONG_VERSION_NUMBER", "the listener does not use TLS: set security.protocol to PLAINTEXT or SASL_PLAINTEXT"),
    (
        "CERTIFICATE_REQUIRED",
        "the listener requires a certificate: set ssl.keystore.location, or ssl.certificate.location and "
        "ssl.key.location",
    ),
    ("EOF occurred", OTHER_PROTOCOL),
    (
        "no answer to .*: the (peer closed the connection|connection is lost)",
        "a listener with SASL closes connections without credentials: set security.protocol to SASL_PLAINTEXT, or to "
        "SASL_SSL if it uses TLS, with sasl.mechanism, sasl.username and sasl.password",
    ),
    ("the peer closed the connection|the connection is lost", OTHER_PROTOCOL),
    (
        "ApiVersions.* is not answered",
        "the port is open, but silent: it isn't a Kafka broker's, or the broker hangs",
    ),
    (NOT_KAFKA, "the port isn't a Kafka broker's"),
    ("SSL", "no TLS version or cipher in common with the listener: see ssl.enabled.protocols, ssl.cipher.suites"),
)
"""Advice by a pattern in the connection error's text; the first entry that matches counts."""


class CommandError(Exception):
    """The failure of a command; `status` is its exit code."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class BrokerUnreachable(CommandError):
    """Connecting to a broker failed, or the connection was lost before the answer. `sent` is False if the broker can't
    have received the request."""

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message, UNREACHABLE)
        self.sent = sent


class NoBrokerAnswered(BrokerUnreachable):
    """No broker of the cluster can be reached, so that nothing can be answered."""


class CoordinatorAway(CommandError):
    """The coordinator of a group has moved or is loading, and was not available in time."""


def hint(reason: str, otherwise: str) -> str:
    """Returns the advice for a connection error; `otherwise` if there is none."""
    return next((advice for pattern, advice in HINTS if re.search(pattern, reason)), otherwise)


def misuse(message: str) -> CommandError:
    """Returns the error for wrong arguments."""
    return CommandError(message, MISUSED)


def explain(code: int, message: str | None = None) -> str:
    """Returns an error code of the cluster as a line: its name, the reason and advice."""
    error = error_code(code)
    advice = ADVICE.get(error)
    return f"{error.name}: {message or error.message}" + (f" ({advice})" if advice else "")


def refusal(what: str, code: int, message: str | None = None) -> CommandError:
    """Returns the error for a request about `what` that the cluster rejected."""
    return CommandError(f"{what}: {explain(code, message)}")


def raise_if(what: str, code: int, message: str | None = None) -> None:
    """Raises CommandError if the code is an error."""
    if code:
        raise refusal(what, code, message)


def from_kafka(error: KafkaError) -> CommandError:
    """Returns the error for a KafkaError that was raised in this process, for example by damaged records."""
    return CommandError(explain(error.code, error.message))
