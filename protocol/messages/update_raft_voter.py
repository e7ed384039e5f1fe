"""UpdateRaftVoter (82)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import IMPLICIT, message, struct, wire
from protocol.types import int16, int32, uint16, uuid


@message(ApiKey.UPDATE_RAFT_VOTER)
class UpdateRaftVoterRequest:
    """A voter changes its endpoints and the versions it supports (KIP-853)."""

    cluster_id: str | None = wire(nullable="0+")
    current_leader_epoch: int32 = wire()
    voter_id: int32 = wire()
    voter_directory_id: uuid = wire()
    listeners: list[Listener] = wire()
    k_raft_version_feature: KRaftVersionFeature = wire()


@struct
class Listener:
    name: str = wire()
    host: str = wire()
    port: uint16 = wire()


@struct
class KRaftVersionFeature:
    """The levels of kraft.version that the voter supports."""

    min_supported_version: int16 = wire()
    max_supported_version: int16 = wire()


@message(ApiKey.UPDATE_RAFT_VOTER)
class UpdateRaftVoterResponse:
    """The error code, and the current leader."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    current_leader: CurrentLeader = wire(tag=0, default=IMPLICIT)


@struct
class CurrentLeader:
    """The current leader, if it is not the receiver."""

    leader_id: int32 = wire(default=-1)
    leader_epoch: int32 = wire(default=-1)
    host: str = wire()
    port: int32 = wire()
