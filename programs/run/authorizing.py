"""Sets up a process's authorizer."""

from __future__ import annotations

from broker.dispatch.host import Host
from broker.request.audit import AuditLog
from broker.request.standard_authorizer import StandardAuthorizer


def authorize(host: Host) -> StandardAuthorizer:
    """Authorizes all requests from now on. A voter's listener opens before its metadata image is loaded, because the
    voters elect a leader through it: until then only super users are authorized."""
    config = host.config
    authorizer = StandardAuthorizer(
        host.loader,
        config.super_user_names,
        allows_unknown=config.allow_everyone_if_no_acl_found,
        audit=AuditLog(host.clock),
        is_loaded=host.is_loaded,
    )
    host.authorizer = authorizer
    return authorizer
