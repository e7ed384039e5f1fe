"""`quorum-state`: the quorum's epoch, its leader, and this node's vote (Kafka's FileQuorumStateStore)."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from protocol.types import NO_UUID, Uuid, uuid_from_text, uuid_to_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import Disk

QUORUM_STATE = "quorum-state"
DATA_VERSION = 1
"""The version for kraft.version 1: voters are in the log, and a vote has a directory id (KIP-853)."""

NOBODY = -1


class QuorumState(NamedTuple):
    """The quorum's last epoch as this node has stored it."""

    leader_id: int = NOBODY
    leader_epoch: int = 0
    voted_id: int = NOBODY
    voted_directory_id: Uuid = NO_UUID
    """The directory id of the candidate that this node voted for. A vote is for a directory, because a node may come
    back with an empty one.
    """


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
        state = json.loads(text)
        directory_id = state.get("votedDirectoryId")  # only in version 1
        return QuorumState(
            int(state["leaderId"]),
            int(state["leaderEpoch"]),
            int(state.get("votedId", NOBODY)),
            NO_UUID if directory_id is None else uuid_from_text(directory_id),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CorruptCheckpoint(path, 1, repr(text), "a JSON object with leaderId and leaderEpoch") from None


def write_quorum_state(disk: Disk, directory: str, state: QuorumState) -> None:
    """Replaces the file atomically and durably, so that this node never leads again in an epoch in which it has led."""
    text = (
        f'{{"leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":{state.voted_id},'
        f'"votedDirectoryId":"{uuid_to_text(state.voted_directory_id)}","data_version":{DATA_VERSION}}}'
    )
    disk.write_atomically(os.path.join(directory, QUORUM_STATE), text.encode())
