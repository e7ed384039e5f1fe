"""Tests the file of the quorum's epoch and vote: the bytes of both versions, and the files that are rejected."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from coordinator.cluster.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from protocol.types import uuid_from_text
from storage.checkpoint import CorruptCheckpoint
from storage.disk import OsDisk

DIRECTORY = "J8aAPcfLQt2bqs1JT_rMgQ"
VERSION_0 = (
    '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
    '"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
)
VERSION_1 = f'{{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"{DIRECTORY}","data_version":1}}'
"""As Apache Kafka's FileQuorumStateStore writes them."""

WRITTEN_0 = VERSION_0[:-1] + ',"checksum":2236985632}'
WRITTEN_1 = VERSION_1[:-1] + ',"checksum":2323910948}'
"""As Odradek writes them."""

STATE_0 = QuorumState(leader_id=1, leader_epoch=2, voters=(1, 3))
STATE_1 = QuorumState(leader_epoch=2, voted_id=1, voted_directory_id=uuid_from_text(DIRECTORY))


@pytest.mark.parametrize(("state", "text"), [(STATE_0, VERSION_0), (STATE_1, VERSION_1)], ids=["0", "1"])
def test_apache_kafkas_files_are_read(tmp_path: Path, state: QuorumState, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    assert read_quorum_state(OsDisk(), str(tmp_path)) == state


@pytest.mark.parametrize(("state", "text"), [(STATE_0, WRITTEN_0), (STATE_1, WRITTEN_1)], ids=["0", "1"])
def test_both_versions_are_apache_kafkas_with_a_checksum(tmp_path: Path, state: QuorumState, text: str) -> None:
    write_quorum_state(OsDisk(), str(tmp_path), state)
    assert (tmp_path / "quorum-state").read_text() == text
    assert read_quorum_state(OsDisk(), str(tmp_path)) == state
    assert [file.name for file in tmp_path.iterdir()] == ["quorum-state"]


def test_version_0_forgets_the_directory_of_the_vote(tmp_path: Path) -> None:
    write_quorum_state(OsDisk(), str(tmp_path), STATE_1._replace(voters=()))
    assert read_quorum_state(OsDisk(), str(tmp_path)) == QuorumState(leader_epoch=2, voted_id=1, voters=())


def test_a_node_without_the_file_has_seen_no_epoch(tmp_path: Path) -> None:
    assert read_quorum_state(OsDisk(), str(tmp_path)) == QuorumState()


@pytest.mark.parametrize("text", [WRITTEN_0, WRITTEN_1], ids=["0", "1"])
def test_each_flipped_bit_is_detected_or_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    stored = read_quorum_state(OsDisk(), str(tmp_path))
    for at in range(8 * len(text)):
        content = bytearray(text.encode())
        content[at // 8] ^= 1 << at % 8
        (tmp_path / "quorum-state").write_bytes(content)
        with suppress(CorruptCheckpoint):
            assert read_quorum_state(OsDisk(), str(tmp_path)) == stored
            assert b'"checksum"' not in content  # the name of the checksum itself


def without(text: str, name: str) -> str:
    return json.dumps({key: value for key, value in json.loads(text).items() if key != name})


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "[" * 100_000, "\x00" * len(VERSION_1), VERSION_1[:-1], f"{VERSION_1}{VERSION_1}",
    VERSION_1.replace('"data_version":1', '"data_version":2'),
    VERSION_1.replace('"data_version":1', '"data_version":-1'),
    VERSION_1.replace('"data_version":1', '"data_version":"1"'),
    *(without(VERSION_1, name) for name in json.loads(VERSION_1)),
    *(without(VERSION_0, name) for name in ("leaderId", "leaderEpoch", "votedId", "currentVoters", "data_version")),
    VERSION_1.replace('"leaderEpoch":2', '"leaderEpoch":-2'),
    VERSION_1.replace('"leaderEpoch":2', '"leaderEpoch":2147483648'),
    VERSION_1.replace('"leaderEpoch":2', '"leaderEpoch":2.5'),
    VERSION_1.replace('"leaderEpoch":2', '"leaderEpoch":true'),
    VERSION_1.replace('"votedId":1', '"votedId":-2'),
    VERSION_1.replace(DIRECTORY, "short"), VERSION_1.replace(f'"{DIRECTORY}"', "7"),
    VERSION_0.replace('[{"voterId":1},{"voterId":3}]', "null"),
    VERSION_0.replace('{"voterId":1}', "1"), VERSION_0.replace('"voterId":3', '"voterId":-3'),
])  # fmt: skip
def test_a_damaged_or_unknown_file_is_an_error_and_is_not_changed(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    with pytest.raises(CorruptCheckpoint, match=r"quorum-state, line 1: .* is not a JSON object with the fields"):
        read_quorum_state(OsDisk(), str(tmp_path))
    assert (tmp_path / "quorum-state").read_text() == text
