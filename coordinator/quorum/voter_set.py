"""The voters of the quorum, and their history in the log (KIP-853).

A voter set counts as soon as it is in the log, before it is committed. Truncation restores the previous voter set.

Source: Kafka's VoterSet, VoterSetHistory, KRaftControlRecordStateMachine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from coordinator.cluster.brokers.info import Endpoint, FeatureRange
from coordinator.quorum.leadership import Location
from coordinator.quorum.replicas import ReplicaKey
from protocol.records import control
from protocol.records.control import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    QuorumRecord,
    VoterEndpoint,
    VotersRecord,
)
from protocol.types import NO_UUID

NO_OFFSET: Final = -1


class VoterNode(NamedTuple):
    """A voter: its id and directory id, its endpoints, and the levels of kraft.version that it supports."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: FeatureRange = FeatureRange(0, 0)

    def address(self, listener: str) -> Location | None:
        """Returns its address on the listener of that name."""
        for endpoint in self.endpoints:
            if endpoint.name.upper() == listener.upper():
                return Location(endpoint.host, endpoint.port)
        return None

    def is_key(self, key: ReplicaKey) -> bool:
        """True if this voter is that replica. A voter without a directory id, as in a static voter set, is any replica
        with its node id."""
        return self.key.node_id == key.node_id and self.key.directory_id in (NO_UUID, key.directory_id)


class VoterSet:
    """Voters by node id. It never changes; a change makes another voter set."""

    def __init__(self, voters: Iterable[VoterNode] = ()) -> None:
        self._voters = {voter.key.node_id: voter for voter in voters}

    def __len__(self) -> int:
        return len(self._voters)

    def __iter__(self) -> Iterator[VoterNode]:
        return iter(self._voters.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._voters == other._voters

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._voters)))

    def __str__(self) -> str:
        return f"[{', '.join(str(node_id) for node_id in sorted(self._voters))}]"

    @property
    def ids(self) -> list[int]:
        """The voters' node ids in order."""
        return sorted(self._voters)

    def get(self, node_id: int) -> VoterNode | None:
        """Returns the voter with that node id."""
        return self._voters.get(node_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        """True if the replica is a voter."""
        voter = self._voters.get(key.node_id)
        return voter is not None and voter.is_key(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """True if the replica is the only voter."""
        return len(self._voters) == 1 and self.is_voter(key)

    def with_voter(self, added: VoterNode) -> VoterSet:
        """Returns the voter set with another voter, or with other data of a voter that it has."""
        return VoterSet([*(voter for voter in self if voter.key.node_id != added.key.node_id), added])

    def without(self, key: ReplicaKey) -> VoterSet | None:
        """Returns the voter set without a voter; None if it has no such voter, or no other."""
        voter = self._voters.get(key.node_id)
        if voter is None or voter.key != key or len(self._voters) == 1:
            return None
        return VoterSet(other for other in self if other is not voter)

    def to_record(self) -> VotersRecord:
        """Returns the voter set as a control record."""
        return VotersRecord(
            version=0,
            voters=[
                control.Voter(
                    voter_id=voter.key.node_id,
                    voter_directory_id=voter.key.directory_id,
                    endpoints=[
                        VoterEndpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                        for endpoint in voter.endpoints
                    ],
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=voter.kraft_versions.min_level,
                        max_supported_version=voter.kraft_versions.max_level,
                    ),
                )
                for voter in self
            ],
        )


def from_record(record: VotersRecord) -> VoterSet:
    """Returns the voter set of a control record."""
    return VoterSet(
        VoterNode(
            ReplicaKey(voter.voter_id, voter.voter_directory_id),
            tuple(Endpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints),
            FeatureRange(
                voter.k_raft_version_feature.min_supported_version, voter.k_raft_version_feature.max_supported_version
            ),
        )
        for voter in record.voters
    )


class ControlRecord(NamedTuple):
    """A control record of the log, with its offset. A record of a snapshot has the last offset that the snapshot
    includes."""

    offset: int
    record: QuorumRecord


class VoterHistory:
    """The voter sets and kraft.version of a log by offset."""

    def __init__(self, static: VoterSet) -> None:
        """`static` has the voters of the configuration, which count while the log has none (kraft.version 0)."""
        self._static = static
        self._sets: list[tuple[int, VoterSet]] = []
        self._levels: list[tuple[int, int]] = []

    @property
    def last(self) -> VoterSet:
        """The voter set of the log's end."""
        return self._sets[-1][1] if self._sets else self._static

    @property
    def last_offset(self) -> int:
        """The offset of the last voter set; NO_OFFSET if the configuration has it."""
        return self._sets[-1][0] if self._sets else NO_OFFSET

    @property
    def is_in_log(self) -> bool:
        """True if the log or a snapshot has voters."""
        return bool(self._sets)

    @property
    def kraft_version(self) -> int:
        """The kraft.version of the log's end."""
        return self._levels[-1][1] if self._levels else 0

    def before(self, offset: int) -> tuple[VoterSet, int]:
        """Returns the voter set and kraft.version of the records before this offset, for a snapshot."""
        voters = next((voters for at, voters in reversed(self._sets) if at < offset), self._static)
        return voters, next((level for at, level in reversed(self._levels) if at < offset), 0)

    def add(self, records: Sequence[ControlRecord]) -> None:
        """Adds the records after those of before."""
        for offset, record in records:
            if isinstance(record, VotersRecord):
                self._sets.append((offset, from_record(record)))
            elif isinstance(record, KRaftVersionRecord):
                self._levels.append((offset, record.k_raft_version))

    def truncate(self, end_offset: int) -> None:
        """Removes what was at this offset and after it."""
        while self._sets and self._sets[-1][0] >= end_offset:
            self._sets.pop()
        while self._levels and self._levels[-1][0] >= end_offset:
            self._levels.pop()

    def forget(self, start_offset: int) -> None:
        """Removes what a snapshot up to this offset replaces, except the last of each."""
        while len(self._sets) > 1 and self._sets[1][0] < start_offset:
            self._sets.pop(0)
        while len(self._levels) > 1 and self._levels[1][0] < start_offset:
            self._levels.pop(0)

    def clear(self) -> None:
        """Removes everything, before a snapshot's records are added."""
        self._sets.clear()
        self._levels.clear()
