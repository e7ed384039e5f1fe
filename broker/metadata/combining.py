"""The broker of a node with both roles: it reads the metadata from the voter's log, and registers with the active
controller, in this process or in another one.

part = open_replica(settings, quorum, environment)
part.replica.start()                                             # once the controllers' listeners are open
combined = await combine(part, settings, quorum, endpoints, failed, environment)  # registered, fenced, caught up
await combined.metadata.node.unfence()
await combined.metadata.leave()                                  # first the broker, then the controller
combined.metadata.close()

Source: the order of kafka.server.KafkaRaftServer and SharedServer.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from broker.metadata.any_controller import AnyController
from broker.metadata.controllers import Controllers
from broker.metadata.forwarding import FORWARD_MS
from broker.metadata.joining import Joined, MetadataEnvironment, Quorum, open_node, register
from broker.metadata.opening import Metadata, MetadataSettings
from broker.metadata.remote_controller import RemoteController
from broker.metadata.replicating import ReplicaPart
from coordinator.cluster.brokers.info import Endpoint


async def combine(
    part: ReplicaPart,
    settings: MetadataSettings,
    quorum: Quorum,
    endpoints: Sequence[Endpoint],
    failed: Container[str],
    environment: MetadataEnvironment,
) -> Joined:
    """Returns once the broker is registered and the image has all records up to its registration; if that fails, ends
    the voter, too. Log directories in `failed` are not registered. Raises KafkaError."""
    clock, session_ms = environment.clock, quorum.lifecycle.session_ms
    # A connection answers requests in order, so requests that may take long have a connection of their own.
    channels = [
        Controllers(part.leadership, quorum.peers, clock, environment.draw, lambda: part.controller.leads)
        for _ in range(3)
    ]
    for_heartbeats, for_requests, for_isrs = (RemoteController(channel, session_ms) for channel in channels)
    lifecycle = AnyController(part.controller, for_heartbeats, clock, session_ms)
    node = open_node(settings, quorum, part.identity, lifecycle, part.cluster.image, environment)

    async def stop() -> None:
        await part.cluster.stop()
        for channel in channels:
            await channel.close()

    controller = AnyController(part.controller, for_requests, clock, FORWARD_MS)
    metadata = Metadata(part.cluster._replace(controller=controller, stop=stop), node)
    await register(metadata, node, endpoints, failed)
    return Joined(metadata, for_requests, AnyController(part.controller, for_isrs, clock, FORWARD_MS))
