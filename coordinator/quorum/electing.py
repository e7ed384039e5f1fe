"""Elections: Vote, BeginQuorumEpoch and EndQuorumEpoch, as requests and as answers (KIP-595, KIP-853, KIP-996).

Source: KafkaRaftClient.handleVoteRequest and the like, pollProspective, pollCandidate, pollResigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from coordinator.cluster.brokers.info import Endpoint
from coordinator.cluster.topics.names import METADATA_TOPIC
from coordinator.quorum.connections import SentRequest
from coordinator.quorum.log_end import LAST_EPOCH, LogEnd
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.roles import Role
from coordinator.quorum.states import CandidateState, FollowerState, ProspectiveState, ResignedState, UnattachedState
from protocol.errors import ErrorCode
from protocol.messages import begin_quorum_epoch as begin
from protocol.messages import end_quorum_epoch as end
from protocol.messages import vote
from protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from protocol.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from protocol.messages.vote import VoteRequest, VoteResponse

if TYPE_CHECKING:
    from coordinator.quorum.core import Core

FIRST_NODE_ENDPOINTS: Final = 1
"""First version of these APIs whose response has the leader's endpoint (KIP-853)."""

MAX_EPOCHS_AHEAD: Final = 1 << 20
"""Maximum number of epochs by which a request may be ahead: twelve days of elections, one a second. Without a limit,
one request of a faulty node could use up all epochs, after which no node is ever elected again."""

LASTING_ERRORS: Final = frozenset({ErrorCode.INVALID_VOTER_KEY, ErrorCode.INCONSISTENT_CLUSTER_ID})
"""Errors of Vote that a repetition gets again: another replica, or another cluster, answers at the voter's address.
KafkaRaftClient repeats the request until the election times out."""


class _QuorumPartition(Protocol):
    partition_index: int


P = TypeVar("P", bound=_QuorumPartition)
P_co = TypeVar("P_co", bound=_QuorumPartition, covariant=True)


class _QuorumTopic(Protocol[P_co]):
    topic_name: str

    @property
    def partitions(self) -> Sequence[P_co]: ...


class _LeaderEndpoint(Protocol):
    name: str
    host: str
    port: int


class AnsweredEndpoint(Protocol):
    """A node's endpoint in an answer."""

    node_id: int
    host: str
    port: int


def only_partition(topics: Sequence[_QuorumTopic[P]]) -> P | None:
    """Returns the metadata partition, if a request or an answer is only for it."""
    if len(topics) != 1 or topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = topics[0].partitions
    return partitions[0] if len(partitions) == 1 and partitions[0].partition_index == 0 else None


def answered_endpoints(core: Core, leader_id: int, endpoints: Sequence[AnsweredEndpoint]) -> tuple[Endpoint, ...]:
    """Returns the leader's endpoint in an answer, on the listener on which this node reaches controllers."""
    return tuple(
        Endpoint(core.replica.listener, endpoint.host, endpoint.port)
        for endpoint in endpoints
        if endpoint.node_id == leader_id and endpoint.host and 0 < endpoint.port < 1 << 16
    )


def _request_endpoints(endpoints: Sequence[_LeaderEndpoint]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in endpoints)


def _error_of_request(core: Core, cluster_id: str | None, partition: _QuorumPartition | None) -> ErrorCode:
    return core.error_of_cluster(cluster_id) or (ErrorCode.INVALID_REQUEST if partition is None else ErrorCode.NONE)


def _error_of_sender(core: Core, node_id: int, epoch: int) -> ErrorCode:
    if epoch < core.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    is_valid = node_id >= 0 and epoch <= core.epoch + MAX_EPOCHS_AHEAD
    return ErrorCode.NONE if is_valid else ErrorCode.INVALID_REQUEST


# Vote


def answer_vote(core: Core, request: VoteRequest, version: int, listener: str, ticket: int) -> None:
    """Answers a candidate, or a voter that requests a pre-vote."""
    partition = only_partition(request.topics)
    code = _error_of_request(core, request.cluster_id, partition)
    if partition is None or code:
        core.reply(ticket, VoteResponse(error_code=code, topics=[]))
        return
    last = LogEnd(partition.last_offset, partition.last_offset_epoch)
    granted = False
    if last.offset < 0 or last.epoch < 0 or last.epoch >= partition.replica_epoch + partition.pre_vote:
        code = ErrorCode.INVALID_REQUEST
    else:
        code = _error_of_sender(core, partition.replica_id, partition.replica_epoch)
    if not code:
        if partition.replica_epoch > core.epoch:
            core.become_unattached(partition.replica_epoch)
        code = core.error_of_receiver(request.voter_id, partition.voter_directory_id)
    if not code:
        candidate = ReplicaKey(partition.replica_id, partition.replica_directory_id)
        granted = _grants(core, candidate, last, pre_vote=partition.pre_vote)
    data = vote.ResponsePartitionData(
        partition_index=0,
        error_code=code,
        leader_id=core.leader_id,
        leader_epoch=core.epoch,
        vote_granted=granted,
    )
    response = VoteResponse(
        error_code=ErrorCode.NONE,
        topics=[vote.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])],
        node_endpoints=[],
    )
    endpoint = core.leader_endpoint(listener)
    if version >= FIRST_NODE_ENDPOINTS and endpoint is not None:
        response.node_endpoints.append(
            vote.NodeEndpoint(node_id=core.leader_id, host=endpoint.host, port=endpoint.port)
        )
    core.reply(ticket, response)


def _grants(core: Core, candidate: ReplicaKey, last: LogEnd, *, pre_vote: bool) -> bool:
    rules, state = core.rules, core.state
    up_to_date = rules.is_up_to_date(last, core.log.end)
    if pre_vote:
        has_fetched = isinstance(state, FollowerState) and state.has_fetched
        return rules.grants_pre_vote(state.role, has_fetched, up_to_date)
    if candidate.node_id == core.replica.key.node_id:
        return False
    granted = rules.grants_vote(state.role, core.voted, core.has_leader, candidate, up_to_date)
    if granted and core.voted is None:
        core.vote_for(candidate)
    return granted


def vote_answered(core: Core, sent: SentRequest, response: VoteResponse | ErrorCode) -> None:
    """Handles a voter's answer. A voter that doesn't know pre-votes doesn't stop an election."""
    state = core.state
    if not isinstance(response, VoteResponse):
        if response is ErrorCode.UNSUPPORTED_VERSION and isinstance(state, ProspectiveState):
            state.votes.record(sent.node_id, granted=True)
            return
        _pause(core, sent)
        return
    partition = only_partition(response.topics)
    code = response.error_code or (partition.error_code if partition is not None else ErrorCode.NONE)
    if code in LASTING_ERRORS and isinstance(state, ProspectiveState | CandidateState):
        state.votes.record(sent.node_id, granted=False)
    if response.error_code or partition is None:
        _pause(core, sent)
        return
    epoch = core.epoch
    endpoints = answered_endpoints(core, partition.leader_id, response.node_endpoints)
    if code != ErrorCode.UNKNOWN_LEADER_EPOCH:
        core.learn_leader(partition.leader_id, partition.leader_epoch, endpoints)
    if core.state is not state or core.epoch != epoch or partition.leader_epoch < epoch:
        return
    if code:
        _pause(core, sent)
    elif isinstance(state, ProspectiveState | CandidateState):
        state.votes.record(sent.node_id, granted=partition.vote_granted)


def _pause(core: Core, sent: SentRequest) -> None:
    core.connections.pause(sent.node_id, core.now_ms + core.config.retry_backoff_ms)


def _request_votes(core: Core, state: ProspectiveState | CandidateState) -> None:
    end_ = core.log.end
    for voter in state.votes.unrecorded:
        if not core.is_ready(voter.key.node_id):
            continue
        partition = vote.PartitionData(
            partition_index=0,
            replica_epoch=core.epoch,
            replica_id=core.replica.key.node_id,
            replica_directory_id=core.replica.key.directory_id,
            voter_directory_id=voter.key.directory_id,
            last_offset_epoch=end_.epoch,
            last_offset=end_.offset,
            pre_vote=isinstance(state, ProspectiveState),
        )
        request = VoteRequest(
            cluster_id=core.replica.cluster_id,
            voter_id=voter.key.node_id,
            topics=[vote.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        )
        core.send(voter.key.node_id, voter.address(core.replica.listener), request, to=voter.key)


# What is due


def poll_unattached(core: Core, state: UnattachedState) -> bool:
    """Does what is due. Returns True if the role has changed."""
    if not core.may_elect:
        return False
    if core.now_ms >= state.election_ms:
        core.become_prospective()
        return True
    core.wake(state.election_ms)
    return False


def poll_prospective(core: Core, state: ProspectiveState) -> bool:
    """Does what is due. Returns True if the role has changed."""
    if state.votes.are_granted and core.may_elect:
        core.become_candidate()
        return True
    if state.votes.are_rejected or core.now_ms >= state.election_ms or not core.may_elect:
        after = core.rules.after_lost_pre_vote(core.has_leader and core.leader_address is not None)
        if after is Role.FOLLOWER:
            core.become_follower(core.epoch, core.leader_id, core.leader_endpoints)
            return True
        if after is Role.UNATTACHED:
            core.become_unattached(core.epoch)
            return True
    else:
        core.wake(state.election_ms)
    _request_votes(core, state)
    return False


def poll_candidate(core: Core, state: CandidateState) -> bool:
    """Does what is due. Returns True if the role has changed. A candidate that has lost waits for its whole election
    timeout, and longer each time."""
    if state.votes.are_granted:
        core.become_leader(sorted(state.votes.granted))
        return True
    if state.votes.are_rejected and not state.is_lost:
        state.is_lost = True
        backoff_ms = core.rules.election_backoff_ms(state.retries, core.config.election_backoff_max_ms, core.random)
        state.election_ms = max(state.election_ms, core.now_ms + backoff_ms)
    if core.now_ms >= state.election_ms and core.may_elect:
        core.become_prospective(state.retries)
        return True
    if core.may_elect:
        core.wake(state.election_ms)
    if not state.is_lost:
        _request_votes(core, state)
    return False


def poll_resigned(core: Core, state: ResignedState) -> bool:
    """Does what is due. Returns True if the role has changed."""
    if not core.is_shutting_down and core.epoch < LAST_EPOCH:
        if core.now_ms >= state.election_ms:
            core.become_unattached(core.epoch + 1)
            return True
        core.wake(state.election_ms)
    for voter in core.other_voters:
        if voter.key.node_id in state.unacknowledged and core.is_ready(voter.key.node_id):
            core.send(voter.key.node_id, voter.address(core.replica.listener), _end_request(core, state), to=voter.key)
    return False


# BeginQuorumEpoch


def answer_begin(core: Core, request: BeginQuorumEpochRequest, version: int, listener: str, ticket: int) -> None:
    """Answers a node that has become the leader."""
    partition = only_partition(request.topics)
    code = _error_of_request(core, request.cluster_id, partition)
    if partition is None or code:
        core.reply(ticket, BeginQuorumEpochResponse(error_code=code, topics=[]))
        return
    code = _error_of_sender(core, partition.leader_id, partition.leader_epoch)
    if not code:
        core.learn_leader(partition.leader_id, partition.leader_epoch, _request_endpoints(request.leader_endpoints))
        code = core.error_of_receiver(request.voter_id, partition.voter_directory_id)
    data = begin.ResponsePartitionData(
        partition_index=0, error_code=code, leader_id=core.leader_id, leader_epoch=core.epoch
    )
    response = BeginQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=[begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])],
        node_endpoints=[],
    )
    endpoint = core.leader_endpoint(listener)
    if version >= FIRST_NODE_ENDPOINTS and endpoint is not None:
        response.node_endpoints.append(
            begin.NodeEndpoint(node_id=core.leader_id, host=endpoint.host, port=endpoint.port)
        )
    core.reply(ticket, response)


def begin_answered(core: Core, sent: SentRequest, response: BeginQuorumEpochResponse | ErrorCode) -> None:
    """Handles a voter's answer. Its Fetch shows that it follows; until then BeginQuorumEpoch is repeated."""
    if not isinstance(response, BeginQuorumEpochResponse) or response.error_code:
        _pause(core, sent)
        return
    partition = only_partition(response.topics)
    if partition is not None:
        endpoints = answered_endpoints(core, partition.leader_id, response.node_endpoints)
        core.learn_leader(partition.leader_id, partition.leader_epoch, endpoints)


# EndQuorumEpoch


def answer_end(core: Core, request: EndQuorumEpochRequest, version: int, listener: str, ticket: int) -> None:
    """Answers a leader that resigns. The preferred successors begin an election sooner than the other voters."""
    partition = only_partition(request.topics)
    code = _error_of_request(core, request.cluster_id, partition)
    if partition is None or code:
        core.reply(ticket, EndQuorumEpochResponse(error_code=code, topics=[]))
        return
    code = _error_of_sender(core, partition.leader_id, partition.leader_epoch)
    if not code:
        core.learn_leader(partition.leader_id, partition.leader_epoch, _request_endpoints(request.leader_endpoints))
        if isinstance(core.state, FollowerState) and core.leader_id == partition.leader_id:
            preferred = partition.preferred_candidates
            keys = [ReplicaKey(info.candidate_id, info.candidate_directory_id) for info in preferred]
            core.state.fetch_ms = core.now_ms + _successor_backoff_ms(core, keys, partition.preferred_successors)
            core.state.has_fetched = False  # its leader is gone: it grants pre-votes
    data = end.ResponsePartitionData(
        partition_index=0, error_code=code, leader_id=core.leader_id, leader_epoch=core.epoch
    )
    response = EndQuorumEpochResponse(
        error_code=ErrorCode.NONE,
        topics=[end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[data])],
        node_endpoints=[],
    )
    endpoint = core.leader_endpoint(listener)
    if version >= FIRST_NODE_ENDPOINTS and endpoint is not None:
        response.node_endpoints.append(end.NodeEndpoint(node_id=core.leader_id, host=endpoint.host, port=endpoint.port))
    core.reply(ticket, response)


def _successor_backoff_ms(core: Core, keys: Sequence[ReplicaKey], ids: Sequence[int]) -> int:
    own = core.replica.key
    if keys:
        found = [core.rules.is_voted(key, own) for key in keys]
    else:
        found = [node_id == own.node_id for node_id in ids]
    position = found.index(True) if True in found else len(found)
    if not found:  # a restarted leader knows no follower's progress
        return core.random(core.config.election_backoff_max_ms + 1)
    return core.rules.successor_backoff_ms(position, len(found), core.config.election_backoff_max_ms)


def end_answered(core: Core, sent: SentRequest, response: EndQuorumEpochResponse | ErrorCode) -> None:
    """Handles a voter's answer to the leader that resigns."""
    if not isinstance(response, EndQuorumEpochResponse) or response.error_code:
        _pause(core, sent)
        return
    partition = only_partition(response.topics)
    if partition is None:
        return
    endpoints = answered_endpoints(core, partition.leader_id, response.node_endpoints)
    core.learn_leader(partition.leader_id, partition.leader_epoch, endpoints)
    if isinstance(core.state, ResignedState):
        core.state.unacknowledged.discard(sent.node_id)


def _end_request(core: Core, state: ResignedState) -> EndQuorumEpochRequest:
    partition = end.PartitionData(
        partition_index=0,
        leader_id=core.replica.key.node_id,
        leader_epoch=core.epoch,
        preferred_successors=[key.node_id for key in state.preferred],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in state.preferred
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=core.replica.cluster_id,
        topics=[end.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[
            end.LeaderEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in core.replica.endpoints
        ],
    )
