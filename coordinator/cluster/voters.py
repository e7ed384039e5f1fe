"""Parses the voters of a new quorum in the format of `--initial-controllers`: id@host:port:directory (KIP-853).

Source: Kafka's DynamicVoter and DynamicVoters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from coordinator.cluster.formatting import FIRST_FREE_UUID
from coordinator.cluster.quorum import KRAFT_VERSION
from protocol.config import ConfigError
from protocol.records.control import KRaftVersionFeature, Voter, VoterEndpoint, VotersRecord
from protocol.types import Uuid, uuid_from_text

VOTER: Final = re.compile(r"(\d{1,10})@(?:\[([^]]+)\]|([^:@\[\]]+)):(\d{1,5}):([\w-]+)", re.ASCII)
MAX_NODE_ID: Final = (1 << 31) - 1


class InitialVoter(NamedTuple):
    """A controller in the first voter set of a new quorum."""

    node_id: int
    host: str
    port: int
    directory_id: Uuid


def initial_voters(text: str) -> tuple[InitialVoter, ...]:
    """Returns the voters in a comma-separated list, sorted by id. Raises ConfigError."""
    voters: dict[int, InitialVoter] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        voter = _voter(part)
        if voter.node_id in voters:
            raise ConfigError(f"--initial-controllers: Node id {voter.node_id} was specified more than once.")
        voters[voter.node_id] = voter
    if not voters:
        raise ConfigError("--initial-controllers: No voters given.")
    return tuple(voters[node_id] for node_id in sorted(voters))


def voters_record(voters: Sequence[InitialVoter], listener: str) -> VotersRecord:
    """Returns the control record of these voters; `listener` is the name of their listener."""
    versions = KRaftVersionFeature(min_supported_version=0, max_supported_version=KRAFT_VERSION)
    return VotersRecord(
        version=0,
        voters=[
            Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[VoterEndpoint(name=listener.upper(), host=voter.host, port=voter.port)],
                k_raft_version_feature=versions,
            )
            for voter in voters
        ],
    )


def _voter(text: str) -> InitialVoter:
    match = VOTER.fullmatch(text)
    if match is None or int(match[1]) > MAX_NODE_ID or not 0 < int(match[4]) < 1 << 16:
        raise ConfigError(
            f"--initial-controllers: {text!r} is not id@host:port:directory, such as "
            "3000@controller-1.example:9093:JEXY6aqzQY-32P5TStzaFg"
        )
    try:
        directory_id = uuid_from_text(match[5])
    except ValueError as error:
        raise ConfigError(f"--initial-controllers: {text!r}: {error}") from None
    if int.from_bytes(directory_id) < FIRST_FREE_UUID:
        raise ConfigError(f"--initial-controllers: {text!r}: directory {match[5]} is an id that Kafka reserves")
    return InitialVoter(int(match[1]), match[2] or match[3], int(match[4]), directory_id)
