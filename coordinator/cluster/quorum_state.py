"""`quorum-state`: the quorum's epoch, its leader, and this node's vote.

Version 0 is for kraft.version 0, whose voters are in the configuration; version 1 is for kraft.version 1 (KIP-853), in
which a vote names the candidate's directory. A file of another version, or without one of its version's fields, is
an error (KAFKA-15412): a node that forgets its vote may vote twice in one epoch. Source: Kafka's FileQuorumStateStore.

Odradek adds a field `checksum`, because a flipped bit of an epoch or a vote would be read as another. Apache Kafka
ignores the field, and writes the file without it; then nothing is verified.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

from protocol.types import NO_UUID, Uuid, uuid_from_text, uuid_to_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk

QUORUM_STATE: Final = "quorum-state"

CHECKSUM: Final = "checksum"
"""The field with the CRC-32 of the other fields as `_encoded` writes them."""

NOBODY: Final = -1

MAX_INT32: Final = (1 << 31) - 1


class QuorumState(NamedTuple):
    """The quorum's last epoch as this node has stored it."""

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: Uuid = NO_UUID
    """The directory id of the candidate that this node voted for. A vote is for a directory, because a node may come
    back with an empty one. Version 0 does not store it.
    """
    voters: tuple[int, ...] | None = None
    """The voters of the configuration; None if the log has the voters, or may have them. Version 0 stores them."""


def read_quorum_state(disk: Disk, directory: str) -> QuorumState:
    """Returns the stored state; without a file, the state of a node that has seen no epoch. Raises
    CorruptCheckpoint.
    """
    path = os.path.join(directory, QUORUM_STATE)
    try:
        text = disk.read_file(path)
    except FileNotFoundError:
        return QuorumState()
    try:
        return _parsed(json.loads(text))
    except (ValueError, KeyError, RecursionError):
        expected = "a JSON object with the fields of quorum-state in data_version 0 or 1, and their checksum"
        raise CorruptCheckpoint(path, 1, repr(text), expected) from None


def _parsed(state: object) -> QuorumState:
    """Returns the state in a JSON object. Raises ValueError, KeyError."""
    if not isinstance(state, dict):
        raise ValueError("not an object")
    if CHECKSUM in state and state.pop(CHECKSUM) != zlib.crc32(_encoded(state)):
        raise ValueError(CHECKSUM)
    version = _number(state, "data_version", 0, 1)
    leader_id, voted_id = (_number(state, name, NOBODY, MAX_INT32) for name in ("leaderId", "votedId"))
    epoch = _number(state, "leaderEpoch", 0, MAX_INT32)
    if version == 0:
        voters = state["currentVoters"]
        if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
            raise ValueError("currentVoters")
        ids = tuple(_number(voter, "voterId", 0, MAX_INT32) for voter in voters)
        return QuorumState(leader_id, epoch, voted_id, voters=ids)
    directory_id = state["votedDirectoryId"]
    if not isinstance(directory_id, str):
        raise ValueError("votedDirectoryId")
    return QuorumState(leader_id, epoch, voted_id, uuid_from_text(directory_id))


def _number(state: Mapping[str, object], name: str, least: int, most: int) -> int:
    value = state[name]
    if type(value) is not int or not least <= value <= most:
        raise ValueError(name)
    return value


def write_quorum_state(disk: Disk, directory: str, state: QuorumState) -> None:
    """Replaces the file atomically and durably, so that this node never votes for two candidates in an epoch, and never
    leads again in an epoch in which it has led. A state with the voters of the configuration is written in version 0.
    """
    leader = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    fields: dict[str, object]
    if state.voters is None:
        fields = {**leader, "votedDirectoryId": uuid_to_text(state.voted_directory_id), "data_version": 1}
    else:
        voters = [{"voterId": voter} for voter in state.voters]
        fields = {"clusterId": "", **leader, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
    content = _encoded({**fields, CHECKSUM: zlib.crc32(_encoded(fields))})
    disk.write_atomically(os.path.join(directory, QUORUM_STATE), content)


def _encoded(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
