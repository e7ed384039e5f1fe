"""Requests of group members and administrators, one method each, for scripts that run against two brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from protocol.consumer_protocol import ConsumerProtocolSubscription, write
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupResponse
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from protocol.types import Uuid
from tests.group_requests import fetched_group, join_group, offset_commit, sync_group
from tests.interop.conformance.peers import Peer, response_class
from tests.wire import decode_response, request_frame

GROUP = 0
FIRST_BATCHED_LEAVE, FIRST_BATCHED_FETCH, FIRST_TOPIC_ID = 3, 8, 10
LONG_MS = 600_000
"""Session and rebalance timeout of members, which send no heartbeats: no test takes so long, even on a slow machine."""

Offsets = Mapping[int, int]


def subscription(*topics: str) -> bytes:
    return write(ConsumerProtocolSubscription(topics=list(topics)), 0)


class Member:
    """A member with its own connection, so that an answer can be read later than its request is sent."""

    def __init__(self, peer: Peer, group: str) -> None:
        self.peer = peer
        self.group = group
        self.member_id = ""
        self.generation = -1
        self._line = Peer(peer.name, f"{peer.host}:{peer.port}", peer.data)
        self._sent: tuple[object, int] | None = None

    def send(self, request: object, version: int) -> None:
        self._line.send(request_frame(request, version))
        self._sent = request, version

    def take(self) -> object:
        """Reads the answer to the request, and records it."""
        assert self._sent is not None
        request, version = self._sent
        answer: object = decode_response(self._line.line().receive(), response_class(request), version)
        if isinstance(answer, JoinGroupResponse) and answer.member_id:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
        self.peer.note(request, version, answer)
        return answer

    def close(self) -> None:
        self._line.close()

    # Requests.

    def start_join(
        self,
        version: int = 9,
        *,
        member_id: str | None = None,
        instance_id: str | None = None,
        strategies: Sequence[str] = ("range",),
        protocol_type: str = "consumer",
        session_ms: int = LONG_MS,
        rebalance_ms: int = LONG_MS,
        topics: Iterable[str] = ("orders",),
    ) -> None:
        request = join_group(
            self.group, self.member_id if member_id is None else member_id, strategies, subscription(*topics),
            session_ms=session_ms, rebalance_ms=rebalance_ms, protocol_type=protocol_type,
            group_instance_id=instance_id,
        )  # fmt: skip
        self.send(request, version)

    def join(self, version: int = 9, **fields: object) -> JoinGroupResponse:
        self.start_join(version, **fields)  # type: ignore[arg-type]
        answer = self.take()
        assert isinstance(answer, JoinGroupResponse)
        return answer

    def enter(self, version: int = 9, **fields: object) -> JoinGroupResponse:
        """Joins, with the member id that the broker assigns since version 4."""
        answer = self.join(version, **fields)
        return self.join(version, **fields) if answer.error_code == 79 else answer

    def start_sync(
        self,
        version: int = 5,
        *,
        assignments: Mapping[str, bytes] | None = None,
        generation: int | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol_name: str | None = "range",
    ) -> None:
        request = sync_group(
            self.group, self.member_id if member_id is None else member_id,
            self.generation if generation is None else generation, assignments, group_instance_id=instance_id,
            protocol_type=protocol_type, protocol_name=protocol_name,
        )  # fmt: skip
        self.send(request, version)

    def sync(self, version: int = 5, **fields: object) -> object:
        self.start_sync(version, **fields)  # type: ignore[arg-type]
        return self.take()

    def heartbeat(
        self,
        version: int = 4,
        *,
        generation: int | None = None,
        member_id: str | None = None,
        instance_id: str | None = None,
    ) -> object:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation if generation is None else generation,
            member_id=self.member_id if member_id is None else member_id,
            group_instance_id=instance_id,
        )
        self.send(request, version)
        return self.take()

    def leave(self, version: int = 5, *others: MemberIdentity) -> object:
        members = list(others) or [MemberIdentity(member_id=self.member_id)]
        request = LeaveGroupRequest(group_id=self.group, members=members)
        if version < FIRST_BATCHED_LEAVE:
            request = LeaveGroupRequest(group_id=self.group, member_id=members[0].member_id)
        self.send(request, version)
        return self.take()

    def stable(self, version: int = 9, **fields: object) -> Member:
        """Makes the member the only one of a stable group."""
        self.enter(version, **fields)
        instance = fields.get("instance_id")
        self.sync(assignments={self.member_id: b"all of it"}, instance_id=instance)
        return self


class Groups:
    """Requests about groups by any client."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def commit(
        self,
        group: str,
        topics: Mapping[str, Offsets],
        version: int = 9,
        *,
        member: Member | None = None,
        generation: int | None = None,
        metadata: str | None = "",
        ids: Mapping[str, Uuid] | None = None,
        **fields: object,
    ) -> None:
        epoch = -1 if member is None else member.generation
        request = offset_commit(
            group, topics, metadata=metadata, ids=ids,
            generation_id_or_member_epoch=epoch if generation is None else generation,
            member_id="" if member is None else member.member_id, **fields,
        )  # fmt: skip
        self.peer.try_ask(request, version)

    def fetch(
        self,
        groups: Mapping[str, Mapping[str, Sequence[int]] | None],
        version: int = 9,
        *,
        stable: bool = False,
        ids: Mapping[str, Uuid] | None = None,
        **fields: object,
    ) -> None:
        """Fetches offsets by group and topic; None requests all."""
        if version >= FIRST_BATCHED_FETCH:
            requested = [fetched_group(group, topics, ids=ids, **fields) for group, topics in groups.items()]
            self.peer.try_ask(OffsetFetchRequest(groups=requested, require_stable=stable), version)
            return
        ((group, topics),) = groups.items()
        named = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=list(indexes)) for name, indexes in topics.items()
            ]
        )
        self.peer.try_ask(OffsetFetchRequest(group_id=group, topics=named, require_stable=stable), version)

    def delete_offsets(self, group: str, topics: Mapping[str, Sequence[int]]) -> None:
        requested = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics.items()
        ]
        self.peer.try_ask(OffsetDeleteRequest(group_id=group, topics=requested), 0)

    def describe(self, *groups: str, version: int = 6, operations: bool = False) -> None:
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
        self.peer.try_ask(request, version)

    def wait_while(self, state: str, group: str) -> None:
        """Waits until the group leaves a state: then a request on another connection has been handled. Kafka returns a
        member id before the new group is committed; until then the group is "Dead"."""
        request = DescribeGroupsRequest(groups=[group])
        self.peer.wait_for(request, 5, lambda answer: answer.groups[0].group_state != state)

    def delete(self, *groups: str, version: int = 2) -> None:
        self.peer.try_ask(DeleteGroupsRequest(groups_names=list(groups)), version)

    def list(self, group: str, version: int = 5, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> None:
        """Records the group's entry in the list, if any; other tests' groups are left out."""
        request = ListGroupsRequest(states_filter=[*states], types_filter=[*types])
        answer = self.peer.quietly(request, version)
        if isinstance(answer, ListGroupsResponse):
            answer.groups = [listed for listed in answer.groups if listed.group_id == group]
        self.peer.note(request, version, answer)
