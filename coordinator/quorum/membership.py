"""Changes of the voter set: AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, auto-join, and the upgrade of kraft.version
(KIP-853, KIP-1186).

The leader writes one change at a time, and only after a record of its own epoch is committed.

Source: Kafka's AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler, KRaftVersionUpgrade.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from coordinator.cluster.brokers.bounds import problem_of_addresses, problem_of_count
from coordinator.cluster.brokers.info import Endpoint, FeatureRange
from coordinator.quorum.connections import SentRequest
from coordinator.quorum.leading import LeaderState, is_same_voter, own_voter
from coordinator.quorum.ready import Response
from coordinator.quorum.replicas import ReplicaKey
from coordinator.quorum.states import UPDATE_PERIODS, FollowerState
from coordinator.quorum.voter_change import VoterChange
from coordinator.quorum.voter_set import VoterNode, VoterSet
from protocol.errors import ErrorCode, error_code
from protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from protocol.messages.add_raft_voter import Listener as AddedListener
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from protocol.messages.update_raft_voter import (
    CurrentLeader,
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from protocol.messages.update_raft_voter import Listener as UpdatedListener
from protocol.records.control import KRaftVersionRecord
from protocol.types import uuid_to_text

if TYPE_CHECKING:
    from coordinator.quorum.core import Core

KRAFT_VERSION: Final = "kraft.version"
RECONFIGURABLE: Final = 1
"""The first kraft.version whose voters are in the log."""


class _VoterListener(Protocol):
    name: str
    host: str
    port: int


class VoterRejection(NamedTuple):
    """The error that rejects a request."""

    code: ErrorCode
    message: str | None = None


def _added(code: ErrorCode, message: str | None) -> Response:
    return AddRaftVoterResponse(error_code=code, error_message=message)


def _removed(code: ErrorCode, message: str | None) -> Response:
    return RemoveRaftVoterResponse(error_code=code, error_message=message)


def _endpoints(listeners: Iterable[_VoterListener]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(listener.name, listener.host, listener.port) for listener in listeners)


def text(key: ReplicaKey) -> str:
    """Returns the replica as Kafka's messages show it."""
    directory = f"Optional[{uuid_to_text(key.directory_id)}]" if any(key.directory_id) else "Optional.empty"
    return f"ReplicaKey(id={key.node_id}, directoryId={directory})"


def _keys(voters: VoterSet) -> str:
    return f"[{', '.join(text(voter.key) for voter in voters)}]"


def _rejection(core: Core, cluster_id: str | None, key: ReplicaKey, what: str) -> VoterRejection | None:
    if core.error_of_cluster(cluster_id):
        message = f'The given id "{cluster_id}" doesn\'t match the cluster id "{core.replica.cluster_id}"'
        return VoterRejection(ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    if not isinstance(core.state, LeaderState):
        return VoterRejection(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if key.node_id < 0 or not any(key.directory_id):
        return VoterRejection(ErrorCode.INVALID_REQUEST, f"{what} voter request didn't include a valid voter")
    return None


def _busy(core: Core, leader: LeaderState, doing: str) -> VoterRejection | None:
    """Returns the rejection of a change that has to wait for another, or that kraft.version doesn't allow."""
    if leader.change is not None:
        message = "Request timed out waiting for leader to handle previous voter change request"
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT, message)
    history = core.history
    if not leader.is_established:
        message = "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT, message)
    if history.kraft_version < RECONFIGURABLE:
        message = (
            f"Cluster doesn't support {doing} voter because the {KRAFT_VERSION} feature is {history.kraft_version}"
        )
        return VoterRejection(ErrorCode.UNSUPPORTED_VERSION, message)
    if not core.rules.may_change_voters(history.last_offset, core.high_watermark, leader.epoch_start_offset):
        message = (
            f"Request timed out waiting for voters to commit the latest voter change at {history.last_offset} with HWM "
            f"{core.high_watermark}"
        )
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT, message)
    return None


# AddRaftVoter


def answer_add(core: Core, request: AddRaftVoterRequest, ticket: int) -> None:
    """Adds a voter: asks it for its kraft.version, checks that it has caught up, and writes the voter set."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    problem = problem_of_count(request.listeners)
    if problem is not None:
        core.reply(ticket, _added(ErrorCode.INVALID_REQUEST, problem))
        return
    voter = VoterNode(key, _endpoints(request.listeners))
    rejection = _rejection(core, request.cluster_id, key, "Add") or _rejection_of_added(core, voter)
    if rejection is not None or not isinstance(core.state, LeaderState):
        core.reply(ticket, _added(*(rejection or VoterRejection(ErrorCode.NOT_LEADER_OR_FOLLOWER))))
        return
    deadline_ms = core.now_ms + core.config.request_timeout_ms
    core.send(key.node_id, voter.address(core.replica.listener), ApiVersionsRequest())
    core.state.change = VoterChange(ticket, deadline_ms, _added, voter, ack_when_committed=request.ack_when_committed)


def _rejection_of_added(core: Core, voter: VoterNode) -> VoterRejection | None:
    assert isinstance(core.state, LeaderState)
    if voter.address(core.replica.listener) is None:
        listed = ", ".join(f"{endpoint.name}={endpoint.host}:{endpoint.port}" for endpoint in voter.endpoints)
        message = (
            f"Add voter request didn't include the endpoint ({listed}) for the default listener {core.replica.listener}"
        )
        return VoterRejection(ErrorCode.INVALID_REQUEST, message)
    problem = problem_of_addresses(voter.endpoints)
    if problem is not None:
        return VoterRejection(ErrorCode.INVALID_REQUEST, problem)
    busy = _busy(core, core.state, "adding")
    if busy is not None:
        return busy
    voters = core.history.last
    if voters.get(voter.key.node_id) is not None:
        message = f"The voter id for {text(voter.key)} is already part of the set of voters {_keys(voters)}."
        return VoterRejection(ErrorCode.DUPLICATE_VOTER, message)
    if not core.is_ready(voter.key.node_id):
        return VoterRejection(
            ErrorCode.REQUEST_TIMED_OUT, f"New voter {text(voter.key)} is not ready to receive requests"
        )
    return None


def api_versions_answered(core: Core, sent: SentRequest, response: ApiVersionsResponse | ErrorCode) -> None:
    """Continues to add the voter that has answered ApiVersions."""
    leader = core.state
    if not isinstance(leader, LeaderState) or leader.change is None or leader.change.added is None:
        return
    change, voter = leader.change, leader.change.added
    if voter.key.node_id != sent.node_id or change.next_offset is not None:
        return
    rejection = _rejection_of_versions(core, leader, voter, response)
    if rejection is not None:
        leader.change = None
        change.answer(core, *rejection)
        return
    assert isinstance(response, ApiVersionsResponse)
    added = voter._replace(kraft_versions=_kraft_versions(response))
    # The offset must be known before the append, which may commit it at once.
    change.next_offset = core.log.end_offset + 1
    leader.append_control([core.history.last.with_voter(added).to_record()])
    if not change.ack_when_committed:
        change.answer(core, ErrorCode.NONE, None)


def _kraft_versions(response: ApiVersionsResponse) -> FeatureRange:
    for feature in response.supported_features:
        if feature.name == KRAFT_VERSION:
            return FeatureRange(feature.min_version, feature.max_version)
    return FeatureRange(0, 0)


def _rejection_of_versions(
    core: Core, leader: LeaderState, voter: VoterNode, response: ApiVersionsResponse | ErrorCode
) -> VoterRejection | None:
    code = response if isinstance(response, ErrorCode) else error_code(getattr(response, "error_code", 0))
    if code or not isinstance(response, ApiVersionsResponse):
        message = f"Aborted add voter operation for since API_VERSIONS returned an error {code.name}"
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT, message)
    levels, finalized = _kraft_versions(response), core.history.kraft_version
    if not levels.min_level <= finalized <= levels.max_level:
        message = (
            f"Aborted add voter operation for {text(voter.key)} since the {KRAFT_VERSION} range (min: "
            f"{levels.min_level}, max: {levels.max_level}) doesn't support the finalized version {finalized}"
        )
        return VoterRejection(ErrorCode.INVALID_REQUEST, message)
    if not leader.is_caught_up(voter.key):
        message = f"Aborted add voter operation for {text(voter.key)} since it is lagging behind"
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT, message)
    return None


# RemoveRaftVoter


def answer_remove(core: Core, request: RemoveRaftVoterRequest, ticket: int) -> None:
    """Removes a voter. A leader that removes itself leads until that is committed, and then resigns."""
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    rejection = _rejection(core, request.cluster_id, key, "Remove")
    leader = core.state
    if rejection is None and isinstance(leader, LeaderState):
        rejection = _busy(core, leader, "removing")
    voters = core.history.last.without(key)
    if rejection is None and voters is None:
        message = f"Cannot remove voter {text(key)} from the set of voters {_keys(core.history.last)}"
        rejection = VoterRejection(ErrorCode.VOTER_NOT_FOUND, message)
    if rejection is not None or voters is None or not isinstance(leader, LeaderState):
        core.reply(ticket, _removed(*(rejection or VoterRejection(ErrorCode.NOT_LEADER_OR_FOLLOWER))))
        return
    leader.change = VoterChange(ticket, core.now_ms + core.config.request_timeout_ms, _removed)
    leader.change.next_offset = core.log.end_offset + 1
    leader.append_control([voters.to_record()])


# UpdateRaftVoter


def answer_update(core: Core, request: UpdateRaftVoterRequest, listener: str, ticket: int) -> None:
    """Updates a voter's endpoints and levels. The response doesn't wait for the commit."""
    code = core.error_of_cluster(request.cluster_id) or core.error_of_epoch(request.current_leader_epoch)
    if not code and problem_of_count(request.listeners) is not None:
        code = ErrorCode.INVALID_REQUEST
    leader = core.state
    if not code and isinstance(leader, LeaderState):
        levels = request.k_raft_version_feature
        voter = VoterNode(
            ReplicaKey(request.voter_id, request.voter_directory_id),
            _endpoints(request.listeners),
            FeatureRange(levels.min_supported_version, levels.max_supported_version),
        )
        code = _error_of_updated(core, leader, voter)
        if not code:
            _update(core, leader, voter)
    current = CurrentLeader(leader_id=core.leader_id, leader_epoch=core.epoch, host="", port=0)
    endpoint = core.leader_endpoint(listener)
    if endpoint is not None:
        current.host, current.port = endpoint.host, endpoint.port
    core.reply(ticket, UpdateRaftVoterResponse(error_code=code, current_leader=current))


def _error_of_updated(core: Core, leader: LeaderState, voter: VoterNode) -> ErrorCode:
    levels, history = voter.kraft_versions, core.history
    is_valid = (
        voter.key.node_id >= 0
        and any(voter.key.directory_id)
        and voter.address(core.replica.listener) is not None
        and problem_of_addresses(voter.endpoints) is None
        and 0 <= levels.min_level <= levels.max_level
        and levels.min_level <= history.kraft_version <= levels.max_level
    )
    if not is_valid:
        return ErrorCode.INVALID_REQUEST
    if history.kraft_version < RECONFIGURABLE:
        return ErrorCode.NONE if history.last.is_voter(voter.key) else ErrorCode.VOTER_NOT_FOUND
    busy = _busy(core, leader, "updating")
    if busy is not None:
        return busy.code
    listed = history.last.get(voter.key.node_id)
    return ErrorCode.NONE if listed is not None and listed.key == voter.key else ErrorCode.VOTER_NOT_FOUND


def _update(core: Core, leader: LeaderState, voter: VoterNode) -> None:
    if core.history.kraft_version < RECONFIGURABLE:
        leader.reported[voter.key.node_id] = voter
        return
    listed = core.history.last.get(voter.key.node_id)
    if listed is None or not is_same_voter(listed, voter):
        leader.append_control([core.history.last.with_voter(voter).to_record()])


def update_answered(core: Core, sent: SentRequest, response: UpdateRaftVoterResponse | ErrorCode) -> None:
    """Handles the leader's answer to this voter's endpoints."""
    if not isinstance(response, UpdateRaftVoterResponse):
        core.connections.pause(sent.node_id, core.now_ms + core.config.retry_backoff_ms)
        return
    current = response.current_leader
    endpoints = (Endpoint(core.replica.listener, current.host, current.port),) if current.host else ()
    state = core.state
    core.learn_leader(current.leader_id, current.leader_epoch, endpoints)
    if core.state is state and isinstance(state, FollowerState) and not response.error_code:
        state.has_updated = True


# The requests of a follower


def send_voter_change(core: Core, state: FollowerState) -> bool:
    """Sends the leader this node's endpoints, or asks it to become a voter. Returns True if a request was sent."""
    if not core.replica.can_vote:
        return False
    if core.is_voter:
        level = core.history.kraft_version
        own, listed = own_voter(core), core.history.last.get(core.replica.key.node_id)
        is_wrong = listed is None or not is_same_voter(listed, own)
        wants = is_wrong if level >= RECONFIGURABLE else not state.has_updated
    else:
        wants = core.config.auto_join and core.history.kraft_version >= RECONFIGURABLE
    if not wants:
        return False
    is_first = core.history.kraft_version < RECONFIGURABLE and state.has_fetched and not state.has_sent_update
    if core.now_ms < state.update_ms and not is_first:
        core.wake(state.update_ms)
        return False
    state.has_sent_update = True
    state.update_ms = core.now_ms + UPDATE_PERIODS * core.config.fetch_timeout_ms
    request = _update_request(core) if core.is_voter else _join_request(core)
    return core.send(core.leader_id, core.leader_address, request) is not None


def _update_request(core: Core) -> UpdateRaftVoterRequest:
    replica = core.replica
    return UpdateRaftVoterRequest(
        cluster_id=replica.cluster_id,
        current_leader_epoch=core.epoch,
        voter_id=replica.key.node_id,
        voter_directory_id=replica.key.directory_id,
        listeners=[
            UpdatedListener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
            for endpoint in replica.endpoints
        ],
        k_raft_version_feature=KRaftVersionFeature(
            min_supported_version=replica.kraft_versions.min_level,
            max_supported_version=replica.kraft_versions.max_level,
        ),
    )


def _join_request(core: Core) -> AddRaftVoterRequest | RemoveRaftVoterRequest:
    """Returns the request that adds this node, or removes a voter with its id and another directory, which is lost."""
    replica = core.replica
    former = core.history.last.get(replica.key.node_id)
    if former is not None:
        return RemoveRaftVoterRequest(
            cluster_id=replica.cluster_id,
            voter_id=former.key.node_id,
            voter_directory_id=former.key.directory_id,
        )
    return AddRaftVoterRequest(
        cluster_id=replica.cluster_id,
        timeout_ms=core.config.request_timeout_ms,
        voter_id=replica.key.node_id,
        voter_directory_id=replica.key.directory_id,
        listeners=[
            AddedListener(name=endpoint.name, host=endpoint.host, port=endpoint.port) for endpoint in replica.endpoints
        ],
        ack_when_committed=False,
    )


def change_answered(core: Core, sent: SentRequest, response: Response | ErrorCode) -> None:
    """Handles the answer to AddRaftVoter or RemoveRaftVoter. The log shows if this node is a voter; if it isn't, the
    request is repeated later."""
    if not isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
        core.connections.pause(sent.node_id, core.now_ms + core.config.retry_backoff_ms)
        return
    if response.error_code:
        core.out.problems.append(f"this node can't become a voter: {response.error_message}")


# kraft.version


def upgrade_problem(core: Core, kraft_version: int) -> VoterRejection | None:
    """Returns why the leader can't write this kraft.version; None if it can, or if it is the present one."""
    leader, history = core.state, core.history
    if not isinstance(leader, LeaderState):
        return VoterRejection(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if kraft_version == history.kraft_version:
        return None
    change = f"Invalid upgrade of {KRAFT_VERSION} from version {history.kraft_version} to {kraft_version}"
    if kraft_version < history.kraft_version:
        return VoterRejection(ErrorCode.INVALID_UPDATE_VERSION, f"{change} because the new version is a downgrade")
    if kraft_version != RECONFIGURABLE:
        return VoterRejection(ErrorCode.INVALID_UPDATE_VERSION, change)
    if not leader.is_established:
        return VoterRejection(ErrorCode.REQUEST_TIMED_OUT)
    voters = _reported(core, leader)
    if any(voter.kraft_versions.max_level < kraft_version or not any(voter.key.directory_id) for voter in voters):
        message = f"Invalid upgrade of {KRAFT_VERSION} to {kraft_version} because not all of the voters support it"
        return VoterRejection(ErrorCode.INVALID_UPDATE_VERSION, message)
    return None


def _reported(core: Core, leader: LeaderState) -> VoterSet:
    """Returns the voters with the directories and levels that they have reported; the others without."""
    own = own_voter(core)
    reported = {**leader.reported, own.key.node_id: own}
    return VoterSet(reported.get(voter.key.node_id, voter) for voter in core.history.last)


def upgrade(core: Core, kraft_version: int) -> VoterRejection | None:
    """Writes a higher kraft.version and the voters with their directories to the log, unless there is a problem."""
    problem, leader = upgrade_problem(core, kraft_version), core.state
    if problem is None and isinstance(leader, LeaderState) and kraft_version != core.history.kraft_version:
        level = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
        leader.append_control([level, _reported(core, leader).to_record()])
    return problem
