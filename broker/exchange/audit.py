"""The audit log: the logger `audit` records which client was allowed or denied which operation on which resource.

A denial is logged at info, a permission at debug, as Kafka's StandardAuthorizer does. A check that only filters an
answer is not logged. A permission to change the cluster is logged each time, a permission to read or write once for
each connection and resource. No line contains a record, a key or a password.

A request can name a hundred thousand resources, so the lines of each request and of each second are limited. The other
decisions are counted, and logged at the end of the second: one line for each client, operation and resource type.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from broker.clock import NS_PER_S, Clock
from broker.exchange.context import Context, Principal
from broker.logging import DEBUG, INFO, get_logger
from protocol.acl import Operation, Resource
from protocol.api_key import ApiKey

ADMINISTRATION: Final = frozenset(
    {Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CREATE_TOKENS}
)
"""The operations whose every use is logged."""

LINES_OF_REQUEST: Final = 100
"""Lines that one request may cause, about as many as an operator reads."""

LINES_A_SECOND: Final = 500
"""Lines of all requests in a second, about 150 kB. They take the event loop less than a tenth of the second."""

SUPPRESSED_KINDS: Final = 100
"""Kinds of omitted lines that are counted separately; further kinds are counted together."""

INTERVAL_MS: Final = 1_000

logger: Final = get_logger("audit")


class SuppressedDecision(NamedTuple):
    """The fields by which omitted lines are counted."""

    decision: str
    principal: Principal
    ip: str
    api_key: int
    operation: Operation
    resource: Resource


class AuditLog:
    """Logs the decisions of an authorizer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._interval_ends_ns = 0
        self._lines = 0
        """Lines in the current interval."""
        self._suppressed: Counter[SuppressedDecision] = Counter()
        self._suppressed_others = 0

    def decided(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, is_allowed: bool
    ) -> None:
        """Logs a decision, or only counts it if its request or the current second has used up its lines."""
        if not logger.is_enabled_for(DEBUG if is_allowed else INFO):
            return
        decision = "allowed" if is_allowed else "denied"
        if not self._may_log(context):
            self._suppress(
                SuppressedDecision(decision, context.principal, context.connection.ip, context.key, operation, resource)
            )
            return
        (logger.debug if is_allowed else logger.info)(
            decision,
            principal=str(context.principal),
            operation=operation.name,
            resource=resource.name,
            name=name,
            host=context.connection.ip,
            listener=context.listener,
            api=ApiKey(context.key).name,
            client_id=context.client_id,
        )

    def _may_log(self, context: Context) -> bool:
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._interval_ends_ns:
            self._interval_ends_ns = now_ns + NS_PER_S
            self._lines = 0
        if self._lines >= LINES_A_SECOND or context.audit_lines >= LINES_OF_REQUEST:
            return False
        self._lines += 1
        context.audit_lines += 1
        return True

    def _suppress(self, kind: SuppressedDecision) -> None:
        if not self._suppressed:
            self._clock.call_after(INTERVAL_MS, self._log_suppressed)
        if kind in self._suppressed or len(self._suppressed) < SUPPRESSED_KINDS:
            self._suppressed[kind] += 1
        else:
            self._suppressed_others += 1

    def _log_suppressed(self) -> None:
        for kind, count in self._suppressed.items():
            logger.info(
                "decisions without a line each",
                decision=kind.decision,
                count=count,
                principal=str(kind.principal),
                operation=kind.operation.name,
                resource=kind.resource.name,
                host=kind.ip,
                api=ApiKey(kind.api_key).name,
            )
        if self._suppressed_others:
            logger.info("other decisions without a line each", count=self._suppressed_others)
        self._suppressed.clear()
        self._suppressed_others = 0
