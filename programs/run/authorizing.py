"""Gives a process its authorizer, and its handlers their guards."""

from __future__ import annotations

from broker.exchange.audit import AuditLog
from broker.exchange.standard_authorizer import StandardAuthorizer
from broker.guards import HandlerGuards
from broker.requests.host import Host


def authorize(host: Host) -> StandardAuthorizer:
    """Has every request of a client checked from now on. The image has all access control entries by now: clients are
    let in only after it was loaded."""
    config = host.config
    authorizer = StandardAuthorizer(
        config.super_user_names, allows_unknown=config.allow_everyone_if_no_acl_found, audit=AuditLog(host.clock)
    )
    authorizer.follow(host.loader)
    host.authorizer, host.authorizes, host.guards = authorizer, True, HandlerGuards()
    return authorizer
