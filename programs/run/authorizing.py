"""Sets up a process's authorizer."""

from __future__ import annotations

from broker.dispatch.host import Host
from broker.request.audit import AuditLog
from broker.request.standard_authorizer import StandardAuthorizer


def authorize(host: Host) -> StandardAuthorizer:
    """Authorizes all client requests from now on. The metadata image already has all access control entries, because
    clients are accepted only after it was loaded."""
    config = host.config
    authorizer = StandardAuthorizer(
        host.loader,
        config.super_user_names,
        allows_unknown=config.allow_everyone_if_no_acl_found,
        audit=AuditLog(host.clock),
    )
    host.authorizer = authorizer
    return authorizer
