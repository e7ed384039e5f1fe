"""StreamsGroupTopologyDescriptionUpdate (93)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int8, int16, int32


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE)
class StreamsGroupTopologyDescriptionUpdateRequest:
    """A streams member describes the topology's nodes and stores, for people to read (KIP-1331)."""

    group_id: str = wire()
    member_id: str = wire()
    topology_epoch: int32 = wire()
    topology_description: TopologyDescription = wire()


@struct
class TopologyDescription:
    subtopologies: list[TopologyDescriptionSubtopology] = wire()
    global_stores: list[TopologyDescriptionGlobalStore] = wire()


@struct
class TopologyDescriptionSubtopology:
    subtopology_id: str = wire()
    nodes: list[TopologyDescriptionNode] = wire()


@struct
class TopologyDescriptionNode:
    """A node. Type: 1 source, 2 processor, 3 sink. A null sink topic is selected for each record."""

    name: str = wire()
    node_type: int8 = wire()
    source_topics: list[str] = wire()
    sink_topic: str | None = wire(nullable="0+", default=None)
    stores: list[str] = wire()
    successors: list[str] = wire()


@struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = wire()
    processor: TopologyDescriptionNode = wire()


@message(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE)
class StreamsGroupTopologyDescriptionUpdateResponse:
    """The error code of the update."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+", default=None)
