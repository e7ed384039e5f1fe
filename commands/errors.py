"""Why a command failed, worded for whoever typed it, and the exit codes."""

from __future__ import annotations

from typing import Final

from protocol.errors import ErrorCode, KafkaError, error_code

DONE: Final = 0
FAILED: Final = 1
"""The cluster refused, or a part of it: what was done is told line by line."""
MISUSED: Final = 2
"""The arguments or a file of options are at fault; nothing was done."""
UNREACHABLE: Final = 3
"""No broker answered in time."""
INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it."""

EXIT_CODES: Final = (
    "exit codes: 0 done, 1 refused by the cluster, 2 wrong arguments, 3 no broker reached, 130 interrupted"
)

ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`odradek topic list` shows those that there are",
    ErrorCode.INVALID_REPLICATION_FACTOR: "`odradek cluster describe` shows the brokers; -r asks for fewer replicas",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "`odradek acl list` shows who may do what",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "`odradek acl list` shows who may do what",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "`odradek acl list` shows who may do what",
    ErrorCode.NON_EMPTY_GROUP: "`odradek group members` shows who is in it; stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "`odradek group list` shows those that there are",
    ErrorCode.SECURITY_DISABLED: "the brokers have no authorizer (authorizer.class.name)",
}
"""A command that helps, or an option that would be right, by the error that the cluster answered."""


OTHER_PROTOCOL: Final = "security.protocol has to be the listener's: SSL or SASL_SSL where it speaks TLS, else neither"

HINTS: Final = (
    (
        "certificate is not valid for",
        "the certificate has another name: connect by that one, or set ssl.endpoint.identification.algorithm=none",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "ssl.truststore.location (ssl.ca.location) names a file of authorities to trust"),
    ("WRONG_VERSION_NUMBER", "the listener speaks no TLS: security.protocol has to be PLAINTEXT or SASL_PLAINTEXT"),
    (
        "CERTIFICATE_REQUIRED",
        "the listener asks for a certificate: ssl.keystore.location, or ssl.certificate.location and ssl.key.location",
    ),
    ("EOF occurred", OTHER_PROTOCOL),
    ("the peer closed the connection", OTHER_PROTOCOL),
    ("SSL", "the listener and this side do not agree on TLS: ssl.enabled.protocols, ssl.cipher.suites"),
)
"""Settings that help, by a part of the reason why a broker cannot be talked to; the first that fits counts."""


class CommandError(Exception):
    """A command cannot go on; `status` is its exit code."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class BrokerUnreachable(CommandError):
    """A broker cannot be connected to, or was lost before it answered."""

    def __init__(self, message: str) -> None:
        super().__init__(message, UNREACHABLE)


class CoordinatorAway(CommandError):
    """The coordinator of a group moves or loads, and has not come back in time."""


def hint(reason: str, otherwise: str) -> str:
    """Returns the setting that helps where a broker cannot be talked to for this reason."""
    return next((help_text for part, help_text in HINTS if part in reason), otherwise)


def misuse(message: str) -> CommandError:
    """Returns the error of arguments that make no sense."""
    return CommandError(message, MISUSED)


def explain(code: int, message: str | None = None) -> str:
    """Returns an error that the cluster answered as a line: its name, why, and what helps."""
    error = error_code(code)
    advice = ADVICE.get(error)
    return f"{error.name}: {message or error.message}" + (f" ({advice})" if advice else "")


def refusal(what: str, code: int, message: str | None = None) -> CommandError:
    """Returns the error of a request about `what` that the cluster refused."""
    return CommandError(f"{what}: {explain(code, message)}")


def raise_if(what: str, code: int, message: str | None = None) -> None:
    """Raises the cluster's refusal, if it is one."""
    if code:
        raise refusal(what, code, message)


def from_kafka(error: KafkaError) -> CommandError:
    """Returns the error for what this side refused as a broker would, records that are damaged for one."""
    return CommandError(explain(error.code, error.message))
