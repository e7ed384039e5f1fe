"""AlterClientQuotas (49): sets and removes quotas of users, client ids and addresses (KIP-546).

v1 is flexible. A quota of a host is accepted where the name resolves, as Apache Kafka does it. Threads ask for all
names of a request together, of which there may be so many: a name server that is away takes long over
each.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Set as AbstractSet
from typing import Final

from broker.exchange.authorisation import ALTER_CONFIGS_CLUSTER, of_cluster
from broker.requests.api import Api
from broker.requests.by_controller import asker_of
from broker.requests.call import HostCall
from coordinator.cluster.security.client_quotas import host_names, refused_alteration
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

MAX_LOOKUPS: Final = 100
"""The names of hosts in a request, each of which somebody is asked for. Of addresses there may be any number."""


async def alter_client_quotas(call: HostCall[AlterClientQuotasRequest]) -> AlterClientQuotasResponse:
    asker = asker_of(call)._replace(resolvable=await resolvable(host_names(call.request)))
    return await call.host.controller.submit(call.request, AlterClientQuotasResponse, asker)


async def resolvable(hosts: AbstractSet[str]) -> set[str]:
    """Returns those of the hosts and addresses that resolve. Raises KafkaError(INVALID_REQUEST) for too many names."""
    addresses = {host for host in hosts if is_address(host)}
    names = sorted(hosts - addresses)
    if len(names) > MAX_LOOKUPS:
        message = f"A request has quotas of {MAX_LOOKUPS} hosts by their names at most, and this one of {len(names)}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if not names:
        return addresses
    loop = asyncio.get_running_loop()
    lookups = await asyncio.gather(*(loop.run_in_executor(None, is_known, name) for name in names))
    return addresses | {name for name, is_resolved in zip(names, lookups, strict=True) if is_resolved}


def is_address(host: str) -> bool:
    """True for an address of either family, which is there without being looked up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def is_known(host: str) -> bool:
    """Asks for a name, in the calling thread. Unlike the loop's own way to ask it leaves no future behind whose client
    has gone."""
    if "\0" in host:
        return False  # C would read it as what stands before
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
