"""AddRaftVoter (80)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, struct, wire
from protocol.types import int16, int32, uint16, uuid


@message(ApiKey.ADD_RAFT_VOTER)
class AddRaftVoterRequest:
    """Adds a voter to the KRaft quorum (KIP-853)."""

    cluster_id: str | None = wire(nullable="0+")
    timeout_ms: int32 = wire()
    voter_id: int32 = wire()
    voter_directory_id: uuid = wire()
    listeners: list[Listener] = wire()
    ack_when_committed: bool = wire(versions="1+", default=True)  # KIP-1186


@struct
class Listener:
    """An endpoint of the new voter. The leader uses the first endpoint."""

    name: str = wire()
    host: str = wire()
    port: uint16 = wire()


@message(ApiKey.ADD_RAFT_VOTER)
class AddRaftVoterResponse:
    """The error code of the addition."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
