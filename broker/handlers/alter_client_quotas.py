"""AlterClientQuotas (49): sets and removes quotas of users, client ids and addresses (KIP-546).

v1 is flexible. A quota of a host is accepted if the name resolves, as in Apache Kafka. Threads resolve the names of a
request in parallel, and their number is limited: if the name server is down, each name takes long.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

from broker.dispatch.api import CONTROLLER, Api
from broker.dispatch.call import Call
from broker.dispatch.rules import whole
from broker.request.authorisation import ALTER_CONFIGS_CLUSTER
from coordinator.cluster.security.client_quotas import host_names, rejected_alteration
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

MAX_LOOKUPS: Final = 100
"""Maximum number of host names in a request, because each must be resolved. The number of addresses isn't limited."""


async def alter_client_quotas(call: Call[AlterClientQuotasRequest]) -> object:
    call.sender = call.sender._replace(resolvable=await resolvable(host_names(call.request)))
    return await call.by_controller()


def is_known(host: str) -> bool:
    """Resolves a name in the calling thread. Unlike the event loop's resolver, it leaves no future behind if the client
    disconnects."""
    if "\0" in host:
        return False  # C would read only the part before it
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True


async def resolvable(hosts: AbstractSet[str], is_known: Callable[[str], bool] = is_known) -> set[str]:
    """Returns the hosts that resolve, by `is_known` in threads, and the addresses. Raises KafkaError(INVALID_REQUEST)
    for too many names."""
    addresses = {host for host in hosts if is_address(host)}
    names = sorted(hosts - addresses)
    if len(names) > MAX_LOOKUPS:
        message = f"A request may have quotas of at most {MAX_LOOKUPS} host names, and this request has {len(names)}."
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
    if not names:
        return addresses
    loop = asyncio.get_running_loop()
    lookups = await asyncio.gather(*(loop.run_in_executor(None, is_known, name) for name in names))
    return addresses | {name for name, is_resolved in zip(names, lookups, strict=True) if is_resolved}


def is_address(host: str) -> bool:
    """True for an IPv4 or IPv6 address, which needs no look-up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


API = Api(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    alter_client_quotas,
    answered_by=CONTROLLER,
    authorize=whole(ALTER_CONFIGS_CLUSTER),
    reject=rejected_alteration,
)
