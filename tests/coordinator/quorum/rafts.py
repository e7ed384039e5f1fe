"""A replica of a quorum for tests, whose peers are the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from coordinator.cluster.brokers.info import Endpoint, FeatureRange
from coordinator.cluster.quorum import TOPIC_ID
from coordinator.cluster.quorum_state import QuorumState
from coordinator.cluster.snapshot import SnapshotId
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.leadership import Location
from coordinator.quorum.raft import Raft
from coordinator.quorum.ready import LocalReplica, RaftConfig, Ready, RecoveredLog, Request, Response, Send
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.voter_set import ControlRecord, VoterNode, VoterSet
from protocol.messages import begin_quorum_epoch as begin
from protocol.messages import end_quorum_epoch as end
from protocol.messages import fetch, vote
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.vote import VoteRequest, VoteResponse
from protocol.records.building import build
from protocol.records.control import KRaftVersionRecord
from protocol.records.record import Record

R = TypeVar("R")

CLUSTER: Final = "the-cluster"
LISTENER: Final = "CONTROLLER"
ME: Final = 1
CONFIG: Final = RaftConfig()
NO_STATE: Final = QuorumState()
EMPTY: Final = RecoveredLog()
VERSIONS: Final[dict[type, int]] = {FetchRequest: 18, VoteRequest: 2}


def directory(node_id: int) -> bytes:
    return node_id.to_bytes(16, signed=True)


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def voter(node_id: int) -> VoterNode:
    endpoint = Endpoint(LISTENER, f"n{node_id}", 9093)
    return VoterNode(key(node_id), (endpoint,), FeatureRange(0, 1))


def formatted(voters: Sequence[int], log: RecoveredLog) -> RecoveredLog:
    """Returns the log with the snapshot of a format with these voters."""
    records = KRaftVersionRecord(version=0, k_raft_version=1), VoterSet(map(voter, voters)).to_record()
    control = tuple(ControlRecord(-1, record) for record in records)
    return log._replace(control=control + log.control, snapshots=log.snapshots or (SnapshotId(0, 0),))


def records(base_offset: int, epoch: int, count: int = 1) -> bytes:
    """Returns a batch, as a leader sends it."""
    return bytes(build([Record(0, 0, None, b"value")] * count, base_offset=base_offset, partition_leader_epoch=epoch))


class Peers:
    """Node 1 of a quorum of these voters; its random numbers are 0, so that election timeouts are one second."""

    def __init__(
        self,
        voters: Sequence[int] = (1, 2, 3),
        state: QuorumState = NO_STATE,
        log: RecoveredLog = EMPTY,
        *,
        static: bool = False,
        config: RaftConfig = CONFIG,
        can_vote: bool = True,
    ) -> None:
        self.now_ms = 0
        self.ready = Ready()
        """Everything that the core has wanted since the last `clear`."""
        static_voters = VoterSet(
            voter(node_id)._replace(key=ReplicaKey(node_id, bytes(16))) for node_id in voters if static
        )
        self.raft = Raft(
            LocalReplica(CLUSTER, key(ME), voter(ME).endpoints, LISTENER, can_vote),
            config,
            log if static else formatted(voters, log),
            state,
            static_voters,
            [Location("n2", 9093), Location("n3", 9093)],
            lambda _: 0,
            lambda: 0,
            0,
        )
        self.ticket = 0
        """The ticket of the last request."""
        self._collect()

    def _collect(self) -> None:
        ready, all_ = self.raft.ready(), self.ready
        all_.writes += ready.writes
        all_.sends += ready.sends
        all_.replies += ready.replies
        all_.problems += ready.problems
        all_.quorum_state = ready.quorum_state or all_.quorum_state
        all_.flush = ready.flush or all_.flush
        all_.leader = ready.leader or all_.leader
        if ready.high_watermark is not None:
            all_.high_watermark = ready.high_watermark

    def clear(self) -> None:
        self.ready = Ready()

    def pass_ms(self, duration_ms: int) -> None:
        """Lets time pass, with each tick that is due."""
        until_ms = self.now_ms + duration_ms
        while self.raft.deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, self.raft.deadline_ms)
            self.raft.tick(self.now_ms)
            self._collect()
        self.now_ms = until_ms

    def ask(self, request: Request, version: int | None = None) -> Response | None:
        """Sends the node a request, and returns the answer; None while it waits."""
        self.ticket += 1
        newest = VERSIONS.get(type(request), 1) if version is None else version
        self.raft.request(request, newest, LISTENER, self.ticket, self.now_ms)
        self._collect()
        return next((reply.response for reply in self.ready.replies if reply.ticket == self.ticket), None)

    def sent(self, kind: type[R], node_id: int | None = None) -> list[R]:
        """Returns the requests of a kind that the node has sent."""
        return [
            send.request
            for send in self.ready.sends
            if isinstance(send.request, kind) and node_id in (None, send.node_id)
        ]

    def last_send(self, kind: type) -> Send:
        return next(send for send in reversed(self.ready.sends) if isinstance(send.request, kind))

    def answer(self, send: Send, response: object) -> None:
        self.raft.response(send.correlation_id, response, self.now_ms)  # type: ignore[arg-type]
        self._collect()

    def flush(self) -> None:
        """Completes the flush that the node has asked for."""
        if self.ready.flush is not None:
            flush, self.ready.flush = self.ready.flush, None
            self.raft.flushed(flush, self.now_ms)
            self._collect()

    def propose(self) -> int:
        offset = self.raft.propose(build([Record(0, 0, None, b"value")]), self.now_ms)
        self._collect()
        return offset

    # Elections

    def grant(self, *node_ids: int, epoch: int | None = None, granted: bool = True) -> None:
        """Answers the votes that the node has requested of these nodes."""
        for node_id in node_ids:
            sends = [send for send in self.ready.sends if isinstance(send.request, VoteRequest)]
            send = next(send for send in reversed(sends) if send.node_id == node_id)
            self.answer(send, vote_answer(self.raft.epoch if epoch is None else epoch, granted=granted))

    def elect(self) -> None:
        """Makes the node the leader, with its epoch committed."""
        self.pass_ms(1_000)
        self.grant(2)
        self.grant(2)
        self.flush()
        self.fetched_by(2, self.raft.end_offset, self.raft.epoch)

    def follow(self, leader_id: int = 2, epoch: int = 1) -> None:
        """Makes the node follow a leader."""
        self.ask(begin_request(leader_id, epoch))

    def fetched_by(self, node_id: int, offset: int, last_epoch: int, **fields: int) -> Response | None:
        return self.ask(fetch_request(node_id, self.raft.epoch, offset, last_epoch, **fields))

    def fetch_answered(self, data: fetch.PartitionData) -> None:
        """Answers the node's last Fetch."""
        topic = fetch.FetchableTopicResponse(topic=METADATA_TOPIC, topic_id=TOPIC_ID, partitions=[data])
        self.answer(self.last_send(FetchRequest), FetchResponse(error_code=0, responses=[topic], node_endpoints=[]))


def vote_answer(epoch: int, *, granted: bool = True, leader_id: int = -1, code: int = 0) -> VoteResponse:
    data = vote.ResponsePartitionData(
        partition_index=0, error_code=code, leader_id=leader_id, leader_epoch=epoch, vote_granted=granted
    )
    topic = vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])
    return VoteResponse(error_code=0, topics=[topic], node_endpoints=[])


def vote_request(
    node_id: int, epoch: int, offset: int = 0, last_epoch: int = 0, *, pre_vote: bool = False, to: bytes | None = None
) -> VoteRequest:
    data = vote.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=node_id,
        replica_directory_id=directory(node_id),
        voter_directory_id=directory(ME) if to is None else to,
        last_offset_epoch=last_epoch,
        last_offset=offset,
        pre_vote=pre_vote,
    )
    return VoteRequest(
        cluster_id=CLUSTER, voter_id=ME, topics=[vote.TopicData(topic_name=METADATA_TOPIC, partitions=[data])]
    )


def begin_request(leader_id: int, epoch: int) -> BeginQuorumEpochRequest:
    data = begin.PartitionData(
        partition_index=0, voter_directory_id=directory(ME), leader_id=leader_id, leader_epoch=epoch
    )
    return BeginQuorumEpochRequest(
        cluster_id=CLUSTER,
        voter_id=ME,
        topics=[begin.TopicData(topic_name=METADATA_TOPIC, partitions=[data])],
        leader_endpoints=[begin.LeaderEndpoint(name=LISTENER, host=f"n{leader_id}", port=9093)],
    )


def end_request(leader_id: int, epoch: int, preferred: Sequence[int]) -> EndQuorumEpochRequest:
    data = end.PartitionData(
        partition_index=0,
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=node_id, candidate_directory_id=directory(node_id)) for node_id in preferred
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=CLUSTER, topics=[end.TopicData(topic_name=METADATA_TOPIC, partitions=[data])], leader_endpoints=[]
    )


def fetch_request(
    node_id: int, epoch: int, offset: int, last_epoch: int, *, max_wait_ms: int = 0, high_watermark: int = -1
) -> FetchRequest:
    partition = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1_000,
        replica_directory_id=directory(node_id),
        high_watermark=high_watermark,
    )
    return FetchRequest(
        cluster_id=CLUSTER,
        replica_state=fetch.ReplicaState(replica_id=node_id),
        max_wait_ms=max_wait_ms,
        min_bytes=0,
        max_bytes=1_000,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def fetched(epoch: int, leader_id: int, content: bytes = b"", high_watermark: int = -1) -> fetch.PartitionData:
    """Returns a leader's answer to a Fetch."""
    return fetch.PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=high_watermark,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        records=content,
    )
