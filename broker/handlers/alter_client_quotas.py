"""AlterClientQuotas (49): sets and removes quotas of users, client ids and addresses (KIP-546).

v1 is flexible. A quota of a host is accepted where the name resolves, as Apache Kafka does it; a thread asks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from broker.exchange.authorisation import ALTER_CONFIGS_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.call import HostCall
from coordinator.cluster.security.client_quotas import host_names, refused_alteration
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse


async def alter_client_quotas(call: HostCall[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    return await call.host.controller.alter_client_quotas(call.request, await resolvable(host_names(call.request)))


async def resolvable(hosts: Iterable[str]) -> set[str]:
    """Returns those of the hosts and addresses that resolve."""
    return {host for host in hosts if await resolves(host)}


async def resolves(host: str) -> bool:
    """True for an address, and for a name that somebody knows."""
    return await asyncio.to_thread(is_known, host)


def is_known(host: str) -> bool:
    """Asks in the calling thread. Unlike the loop's own way to ask it leaves no future behind whose client has gone."""
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True


API = Api(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    alter_client_quotas,
    of_cluster(ALTER_CONFIGS_CLUSTER),
    refuse=refused_alteration,
)
