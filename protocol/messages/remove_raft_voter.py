"""RemoveRaftVoter (81)."""

from __future__ import annotations

from protocol.api_key import ApiKey
from protocol.schema import message, wire
from protocol.types import int16, int32, uuid


@message(ApiKey.REMOVE_RAFT_VOTER)
class RemoveRaftVoterRequest:
    """Removes a voter from the KRaft quorum (KIP-853)."""

    cluster_id: str | None = wire(nullable="0+")
    voter_id: int32 = wire()
    voter_directory_id: uuid = wire()


@message(ApiKey.REMOVE_RAFT_VOTER)
class RemoveRaftVoterResponse:
    """The error code of the removal."""

    throttle_time_ms: int32 = wire(default=0)
    error_code: int16 = wire()
    error_message: str | None = wire(nullable="0+")
