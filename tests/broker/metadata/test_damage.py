"""Tests a damaged metadata log of a controller: a torn end is truncated, and no other records are dropped silently."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.metadata.damage import Guard, LostMetadata, find_evidence, write_flushed
from broker.metadata.followed_log import FollowedLog
from broker.metadata.log import open_metadata_log
from broker.metadata.opening import Metadata, accept_loss
from broker.metadata.replicated_log import ReplicatedLog
from coordinator.cluster.quorum_state import QuorumState, write_quorum_state
from coordinator.cluster.snapshot import SnapshotId, write_snapshot
from coordinator.quorum.ready import ReadRecords
from protocol.errors import KafkaError
from protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.records.batch import AT_LEADER_EPOCH, HEADER_SIZE, BatchHeader, iter_batches
from storage.checkpoint import CLEAN_SHUTDOWN, write_clean_shutdown
from storage.recovering.salvage import sound_batches
from tests.broker.metadata.harness import MetadataHarness, now
from tests.coordinator.cluster import given
from tests.log_lines import Line

TOPICS = [f"topic-{number}" for number in range(6)]


def create(metadata: Metadata, name: str) -> None:
    now(metadata.controller.submit(CreateTopicsRequest(topics=[given.creatable(name)]), CreateTopicsResponse))


def topics(metadata: Metadata) -> list[str]:
    return metadata.image.topic_names()


class Crashed(MetadataHarness):
    """The directories of a controller that was killed, with a topic in each batch of its log."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.running = self.open()
        for name in TOPICS:
            create(self.running, name)

    @property
    def segment(self) -> Path:
        return self.folder() / f"{0:020d}.log"

    def batches(self) -> list[tuple[int, BatchHeader]]:
        return list(iter_batches(self.segment.read_bytes()))

    def flip(self, position: int, mask: int = 1) -> None:
        data = bytearray(self.segment.read_bytes())
        data[position] ^= mask
        self.segment.write_bytes(data)

    def cut(self, position: int) -> bytes:
        """Truncates the log there, and returns the bytes that are lost."""
        data = self.segment.read_bytes()
        self.segment.write_bytes(data[:position])
        return data[position:]

    def close(self) -> None:
        self.stop(self.running)

    def content(self) -> dict[str, bytes]:
        """Returns the files that describe the cluster."""
        return {file.name: file.read_bytes() for file in self.folder().iterdir() if "index" not in file.name}

    def accept(self) -> int:
        return accept_loss(self.directories, self.directories[0], disk=self.disk, clock=self.clock)


@pytest.fixture
def crashed(tmp_path: Path) -> Crashed:
    return Crashed(tmp_path)


@pytest.fixture
def closed(tmp_path: Path) -> Crashed:
    harness = Crashed(tmp_path)
    harness.close()
    return harness


def refusal(harness: MetadataHarness) -> str:
    with pytest.raises(LostMetadata) as refused:
        harness.open()
    return refused.value.message


def test_a_damaged_batch_with_whole_batches_behind_it_is_refused_and_left_as_it_is(crashed: Crashed) -> None:
    position, header = crashed.batches()[-4]
    crashed.flip(position + HEADER_SIZE + 3)
    before = crashed.content()
    message = refusal(crashed)
    assert f"{crashed.segment} is damaged at byte {position}, offset {header.base_offset}" in message
    assert "3 whole batches follow" in message
    assert f"`odradek log metadata {crashed.directories[0]}`" in message
    assert crashed.content() == before


def test_a_torn_end_is_cut_and_kept(crashed: Crashed, logged: list[Line]) -> None:
    position, header = crashed.batches()[-1]
    crashed.cut(position + header.size_bytes - 5)
    torn = crashed.segment.read_bytes()[position:]
    assert topics(crashed.open()) == TOPICS[:-1]
    file = crashed.folder() / f"{header.base_offset:020d}.torn"
    assert file.read_bytes() == torn
    (line,) = logged
    assert (line.level, line.event, line.fields["kept"]) == ("warning", "end of the metadata log cut", str(file))
    assert list(crashed.folder().glob("*.kept")) == []


def test_what_was_cut_is_kept_when_the_log_is_cut_at_the_same_offset_again(crashed: Crashed) -> None:
    """This happens after a crash within the first batch of the next epoch."""
    position, header = crashed.batches()[-1]
    torn = []
    for _ in range(3):
        crashed.cut(position + 70)
        torn.append(crashed.segment.read_bytes()[position:])
        crashed.accept()
    kept = sorted(crashed.folder().glob("*.torn"))
    assert all(file.name.startswith(f"{header.base_offset:020d}.") for file in kept)
    assert sorted(file.read_bytes() for file in kept) == sorted(torn)


def test_the_file_of_a_torn_end_is_no_part_of_the_log(crashed: Crashed) -> None:
    crashed.cut(crashed.batches()[-1][0] + 70)
    crashed.stop(crashed.open())
    assert topics(crashed.open()) == TOPICS[:-1]
    assert len(list(crashed.folder().glob("*.torn"))) == 1


def test_an_end_that_is_torn_though_the_log_was_closed_in_order_is_refused(closed: Crashed) -> None:
    closed.cut(closed.batches()[-1][0] + 70)
    assert "although the log was closed cleanly" in refusal(closed)


def test_no_flipped_bit_takes_topics_away(crashed: Crashed, tmp_path: Path) -> None:
    """Flips bits of a batch in the middle, and of the last batch's header: the start is rejected, or has all topics."""
    first, header = crashed.batches()[-3]
    last, _ = crashed.batches()[-1]
    sound = crashed.segment.read_bytes()
    shutil.copytree(crashed.directories[0], tmp_path / "sound")
    no_crc = [*range(first, first + 17), *range(last, last + 17)]
    for position in (*no_crc, *range(first + 17, first + header.size_bytes, 20)):
        shutil.rmtree(crashed.directories[0])
        shutil.copytree(tmp_path / "sound", crashed.directories[0])
        crashed.flip(position, 0x81)
        try:
            started = crashed.open(register=False)
        except KafkaError:
            assert len(crashed.segment.read_bytes()) == len(sound), f"byte {position} was cut"
        else:
            assert set(topics(started)) >= set(TOPICS[:-1] if position >= last else TOPICS), f"byte {position}"


def test_no_length_of_a_log_that_was_closed_in_order_is_taken_for_its_end(closed: Crashed, tmp_path: Path) -> None:
    shutil.copytree(closed.directories[0], tmp_path / "sound")
    for position, _ in closed.batches():
        for length in (position, position + 30):
            shutil.rmtree(closed.directories[0])
            shutil.copytree(tmp_path / "sound", closed.directories[0])
            closed.cut(length)
            refusal(closed)


def remove_segment(harness: Crashed) -> None:
    harness.segment.unlink()


def empty_segment(harness: Crashed) -> None:
    harness.cut(0)


def remove_folder(harness: Crashed) -> None:
    shutil.rmtree(harness.folder())


@pytest.mark.parametrize("damage", [remove_segment, empty_segment, remove_folder])
def test_a_missing_log_beside_partitions_is_no_new_cluster(crashed: Crashed, damage: Callable[[Crashed], None]) -> None:
    partition = Path(crashed.directories[0]) / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").touch()
    damage(crashed)
    (crashed.folder() / "quorum-state").unlink(missing_ok=True)
    assert f"{partition} has the log of a partition" in refusal(crashed)


@pytest.mark.parametrize("damage", [remove_segment, empty_segment])
def test_a_missing_log_beside_its_quorum_state_is_no_new_cluster(
    crashed: Crashed, damage: Callable[[Crashed], None]
) -> None:
    damage(crashed)
    assert "but quorum-state has epoch 1" in refusal(crashed)


def test_a_missing_log_after_a_stop_in_order_is_no_new_cluster(closed: Crashed) -> None:
    remove_folder(closed)
    assert f"{CLEAN_SHUTDOWN} shows that this broker was registered at offset" in refusal(closed)


def test_a_log_that_ends_before_the_epoch_that_quorum_state_has_is_refused(crashed: Crashed) -> None:
    write_quorum_state(crashed.disk, str(crashed.folder()), QuorumState(1, 2))
    assert "in epoch 1, but quorum-state has epoch 2" in refusal(crashed)


def test_a_log_that_ends_long_after_the_epoch_that_quorum_state_has_is_refused(crashed: Crashed) -> None:
    for _ in range(3):
        crashed.open()
    write_quorum_state(crashed.disk, str(crashed.folder()), QuorumState(1, 1))
    assert "in epoch 4, but the last epoch in quorum-state is 1" in refusal(crashed)


def test_a_log_that_ends_before_its_snapshot_is_refused(crashed: Crashed) -> None:
    name = SnapshotId(5_000, 1).file_name
    write_snapshot(
        crashed.disk, str(crashed.folder() / name), (), metadata_version=30, last_timestamp=0, now_ms=0, epoch=1
    )
    assert f"{name} has the records before offset 5000" in refusal(crashed)


def test_an_epoch_is_in_the_log_before_it_is_in_quorum_state(crashed: Crashed) -> None:
    """A start that ends in between loses no records."""
    before = (crashed.folder() / "quorum-state").read_bytes()
    crashed.open()
    (crashed.folder() / "quorum-state").write_bytes(before)
    assert crashed.open().metadata_log.epoch == 3


# A voter of several, which may lack what it has never flushed


def open_voter(harness: Crashed) -> ReplicatedLog:
    """Opens the log as that of a voter of several."""
    folder, disk = str(harness.folder()), harness.disk
    return open_metadata_log(
        ReplicatedLog,
        harness.directories[0],
        disk=disk,
        clock=harness.clock,
        worker=harness.worker,
        guard=Guard(folder, find_evidence(folder, harness.directories, disk), disk),
        is_only_copy=lambda _: False,
    )


def test_damage_in_what_a_voter_has_flushed_is_no_torn_end(crashed: Crashed) -> None:
    position, header = crashed.batches()[-1]
    write_flushed(str(crashed.folder()), header.next_offset, crashed.disk)
    crashed.flip(position + HEADER_SIZE + 3)
    with pytest.raises(LostMetadata, match=f"although everything before {header.next_offset} was flushed"):
        open_voter(crashed)


@pytest.mark.parametrize("content", [None, b"", b"junk", b"00000000000000000099 00000000\n"])
def test_damage_in_what_a_voter_has_not_flushed_is_cut(crashed: Crashed, content: bytes | None) -> None:
    position, header = crashed.batches()[-1]
    write_flushed(str(crashed.folder()), header.base_offset, crashed.disk)
    if content is not None:
        (crashed.folder() / "flushed-offset").write_bytes(content)
    crashed.flip(position + HEADER_SIZE + 3)
    assert open_voter(crashed).end_offset == header.base_offset


@pytest.mark.parametrize(("at", "mask"), [(-1, 2), (-3, 4), (-1, 64)])
def test_an_epoch_that_begins_without_a_leader_change_is_damage(crashed: Crashed, at: int, mask: int) -> None:
    """No CRC covers the epoch of a batch."""
    position, header = crashed.batches()[at]
    crashed.flip(position + AT_LEADER_EPOCH + 3, mask)
    with pytest.raises(LostMetadata, match=f"is damaged at offset {header.base_offset}: epoch .* leader change"):
        open_voter(crashed)


@pytest.mark.parametrize("byte", [7, AT_LEADER_EPOCH + 3, HEADER_SIZE + 3])
def test_a_bit_that_flips_while_the_log_is_open_is_not_sent(crashed: Crashed, byte: int) -> None:
    """Of the offset, of the epoch, and of the records."""
    log = open_voter(crashed)
    position, header = crashed.batches()[-2]
    assert log.records(ReadRecords(header.base_offset, 1))
    with crashed.segment.open("r+b") as file:
        file.seek(position + byte)
        damaged = file.read(1)[0] ^ 2
        file.seek(position + byte)
        file.write(bytes([damaged]))
    with pytest.raises(KafkaError):
        log.records(ReadRecords(header.base_offset, 1))


def test_a_log_that_ends_in_a_later_epoch_than_quorum_state_is_refused(crashed: Crashed) -> None:
    crashed.open()
    crashed.open()
    write_quorum_state(crashed.disk, str(crashed.folder()), QuorumState(2, 2))
    with pytest.raises(LostMetadata, match="ends in epoch 3, but the last epoch in quorum-state is 2"):
        open_voter(crashed)


def test_the_only_copy_of_a_log_ends_where_it_was_flushed(crashed: Crashed) -> None:
    header = crashed.batches()[-1][1]
    write_flushed(str(crashed.folder()), header.next_offset, crashed.disk)
    crashed.cut(crashed.batches()[-1][0])
    assert f"flushed-offset shows that everything before offset {header.next_offset} was flushed" in refusal(crashed)
    crashed.accept()
    assert topics(crashed.open()) == TOPICS[:-1]


def damaged(harness: Crashed) -> None:
    harness.flip(harness.batches()[-3][0] + HEADER_SIZE + 3)


def base_offset_of_the_last(harness: Crashed) -> None:
    harness.flip(harness.batches()[-1][0] + 5)


def shorter(harness: Crashed) -> None:
    harness.cut(harness.batches()[-2][0])


@pytest.mark.parametrize(
    ("damage", "left", "files"),
    [(damaged, 5, 1), (base_offset_of_the_last, 6, 1), (shorter, 6, 0), (empty_segment, 0, 0)],
)
def test_an_operator_who_accepts_the_loss_goes_on(
    closed: Crashed, damage: Callable[[Crashed], None], left: int, files: int
) -> None:
    damage(closed)
    before = closed.segment.read_bytes()
    refusal(closed)
    closed.accept()
    started = closed.open()
    assert topics(started) == TOPICS[:left]
    create(started, "afterwards")
    closed.stop(started)
    assert topics(closed.open()) == ["afterwards", *TOPICS[:left]]
    torn = [file.read_bytes() for file in closed.folder().glob("*.torn")]
    assert len(torn) == files
    assert all(before.endswith(content) for content in torn)


def test_the_evidence_of_a_crash_is_no_marker(crashed: Crashed) -> None:
    evidence = find_evidence(str(crashed.folder()), crashed.directories, crashed.disk)
    assert not evidence.is_clean
    write_clean_shutdown(crashed.disk, crashed.directories[0], 7)
    assert find_evidence(str(crashed.folder()), crashed.directories, crashed.disk).broker_epoch == 7


def test_whole_batches_are_found_among_damaged_bytes(crashed: Crashed) -> None:
    data = crashed.segment.read_bytes()
    positions = [position for position, _ in iter_batches(data)]
    assert [position for position, _ in sound_batches(memoryview(data))] == positions
    garbage = bytes(range(256)) * 3 + bytes(500)
    assert [position - len(garbage) for position, _ in sound_batches(memoryview(garbage + data))] == positions
    assert [position for position, _ in sound_batches(memoryview(data[: positions[-1] + 90]))] == positions[:-1]
    assert not list(sound_batches(memoryview(garbage)))


@pytest.mark.parametrize(("damage", "left"), [(damaged, -3), (base_offset_of_the_last, -1)])
def test_a_follower_s_log_is_cut_before_the_damage(
    crashed: Crashed, damage: Callable[[Crashed], None], left: int
) -> None:
    """Its next Fetch requests the rest from the controllers."""
    _, header = crashed.batches()[left]
    damage(crashed)
    log = open_metadata_log(
        FollowedLog, crashed.directories[0], disk=crashed.disk, clock=crashed.clock, worker=crashed.worker
    )
    assert log.end == (header.base_offset, 1)
    assert log.high_watermark == 0, "nothing is served before a leader says what is committed"
