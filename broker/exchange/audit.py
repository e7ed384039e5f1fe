"""The audit log: who may have done what, where, by the logger `audit`.

What is denied is logged each time, and so is what changes the cluster. Of reading and writing, the first time of a
connection is logged for each resource; what only filters an answer is not. No line has a record, a key or a password.
"""

from __future__ import annotations

from typing import Final

from broker.exchange.context import Context
from broker.logging import get_logger
from protocol.acl import Operation, Resource
from protocol.api_key import ApiKey

ADMINISTRATION: Final = frozenset(
    {Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CREATE_TOKENS}
)
"""The operations whose every use is logged."""

log = get_logger("audit")


class AuditLog:
    """Logs the decisions of an authorizer."""

    def decided(
        self, context: Context, operation: Operation, resource: Resource, name: str, *, is_allowed: bool, is_news: bool
    ) -> None:
        """Logs a decision; `is_news` is true for the first of its kind on the connection."""
        if is_allowed and not is_news and operation not in ADMINISTRATION:
            return
        log.info(
            "allowed" if is_allowed else "denied",
            principal=str(context.principal),
            operation=operation.name,
            resource=resource.name,
            name=name,
            host=context.connection.ip,
            listener=context.listener,
            api=ApiKey(context.key).name,
            client_id=context.client_id,
        )
