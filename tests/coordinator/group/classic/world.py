"""A shard of groups, and clients of the classic protocol: requests, and their exact records and answers."""

from __future__ import annotations

from typing import Any

from coordinator.group import requests
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.records import AnyRecord
from coordinator.group.state import Client
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.driver import Asked
from tests.coordinator.group.world import GROUP, Groups
from tests.group_requests import join_group, sync_group


class ClassicGroups(Groups):
    """Requests that may be answered later."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**{"group_initial_rebalance_delay_ms": 3_000, **settings})

    @property
    def classic(self) -> ClassicGroup:
        group = self.shard.state.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    # Requests.

    def join(  # type: ignore[override]
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        strategies: tuple[str, ...] = ("range",),
        metadata: bytes = b"metadata",
        protocol: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
        version: int = 3,
        client_id: str = "client",
    ) -> Asked[JoinGroupResponse, AnyRecord]:
        request = join_group(
            GROUP, member_id, strategies, metadata, session_ms=session_ms, rebalance_ms=rebalance_ms,
            protocol_type=protocol, group_instance_id=instance_id,
        )  # fmt: skip
        return self.ask(requests.join_group, request, Client(version, client_id, "/10.0.0.1"))

    def sync(
        self,
        member_id: str,
        generation: int = 1,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        strategy: str = "range",
    ) -> Asked[SyncGroupResponse, AnyRecord]:
        request = sync_group(
            GROUP, member_id, generation, assignments, group_instance_id=instance_id, protocol_type="consumer",
            protocol_name=strategy,
        )  # fmt: skip
        return self.ask(requests.sync_group, request, Client(5))

    def beat(self, member_id: str, generation: int = 1) -> Asked[HeartbeatResponse, AnyRecord]:
        request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
        return self.ask(requests.heartbeat, request, Client(4))

    def leave(self, *member_ids: str) -> Asked[LeaveGroupResponse, AnyRecord]:
        request = LeaveGroupRequest(
            group_id=GROUP, members=[MemberIdentity(member_id=member_id) for member_id in member_ids]
        )
        return self.ask(requests.leave_group, request, Client(5))

    def stable(self, count: int = 1, **fields: Any) -> list[str]:
        """Creates a group with this number of members, stable in generation 1; returns their ids, the leader's
        first."""
        joined = [self.join(client_id=f"client-{number}", **fields) for number in range(count)]
        self.advance(10_000)
        ids = [asked.answer.member_id for asked in joined]
        assignments = {member_id: f"assignment of {member_id}".encode() for member_id in ids}
        for member_id in ids:
            self.sync(member_id, 1, assignments if member_id == ids[0] else None)
        return ids
