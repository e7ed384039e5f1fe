"""Tests that the records of an image make an equal image."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given as for_any
from hypothesis import settings
from hypothesis import strategies as st

from coordinator.cluster.image import Image
from coordinator.cluster.image_records import records_of
from coordinator.cluster.record import MetadataRecord, decode_batches, encode_batch
from protocol.metadata_records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from protocol.metadata_records.settings import ClientQuotaRecord, EntityData, FeatureLevelRecord, ProducerIdsRecord
from protocol.metadata_records.topics import ClearElrRecord, PartitionChangeRecord, RemoveTopicRecord
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE

NAMES = ("a", "b.c", "b_c", "__consumer_offsets")
small = st.integers(min_value=0, max_value=3)
brokers = st.lists(st.integers(min_value=1, max_value=4), unique=True, max_size=3)
maybe_brokers = st.none() | brokers


def everything(image: Image) -> dict[str, object]:
    return {
        "topics": {topic.name: (topic.topic_id, topic.partitions) for topic in image.topics()},
        "by id": {topic.topic_id: topic.name for topic in image.topics()},
        "configs": {resource: dict(image.configs(resource)) for resource in image.configured()},
        "features": image.features,
        "brokers": image.brokers,
        "controllers": image.controllers,
        "producer ids": image.producer_ids,
        "quotas": dict(image.quotas.items()),
        "acls": dict(image.acls.items()),
        "scram credentials": list(image.scram_credentials),
        "delegation tokens": list(image.delegation_tokens),
        "directories": +image.partitions_in,
        "collisions": {name: image.colliding(name) is None for name in NAMES},
    }


@st.composite
def histories(draw: st.DrawFn) -> list[MetadataRecord]:
    """Returns records in an order in which a controller could have written them."""
    topics: dict[str, tuple[bytes, int]] = {}
    records: list[MetadataRecord] = []
    for step in range(draw(st.integers(min_value=0, max_value=15))):
        name = draw(st.sampled_from(NAMES))
        if name not in topics:
            topics[name] = bytes([step + 1]) * 16, draw(st.integers(min_value=1, max_value=3))
            records += given.topic(name, topics[name][1], topics[name][0], elr=tuple(draw(brokers)))
            continue
        topic_id, count = topics[name]
        records.append(draw(changes(name, topic_id, count)))
        if isinstance(records[-1], RemoveTopicRecord):
            del topics[name]
    return records


def changes(name: str, topic_id: bytes, partitions: int) -> st.SearchStrategy[MetadataRecord]:
    return st.one_of(
        st.builds(
            PartitionChangeRecord,
            partition_id=st.integers(min_value=0, max_value=partitions - 1),
            topic_id=st.just(topic_id),
            isr=maybe_brokers,
            leader=st.integers(min_value=-2, max_value=4),
            adding_replicas=maybe_brokers,
            removing_replicas=maybe_brokers,
            leader_recovery_state=st.integers(min_value=-1, max_value=1),
            eligible_leader_replicas=maybe_brokers,
            last_known_elr=maybe_brokers,
        ),
        st.builds(RemoveTopicRecord, topic_id=st.just(topic_id)),
        st.builds(ClearElrRecord, topic_name=st.sampled_from([name, ""])),
        st.builds(given.topic_config, st.just(name), st.sampled_from("xy"), st.none() | st.just("1")),
        st.builds(given.broker_config, st.sampled_from(["", "1"]), st.sampled_from("xy"), st.none() | st.just("1")),
        st.builds(FeatureLevelRecord, name=st.sampled_from(["group.version", "share.version"]), feature_level=small),
        st.builds(ProducerIdsRecord, broker_id=st.just(NODE), broker_epoch=small, next_producer_id=small),
        st.builds(AccessControlEntryRecord, id=st.sampled_from([b"x" * 16, b"y" * 16]), principal=st.just("User:a")),
        st.builds(UserScramCredentialRecord, name=st.sampled_from("ab"), mechanism=small, iterations=small),
        st.builds(
            ClientQuotaRecord,
            entity=st.just([EntityData(entity_type="user", entity_name=None)]),
            key=st.sampled_from("kl"),
            value=st.floats(allow_nan=False),
            remove=st.booleans(),
        ),
    )


@settings(max_examples=50, deadline=None)
@for_any(histories())
def test_an_image_is_all_that_there_is(history: list[MetadataRecord]) -> None:
    image = given.image(*history)
    again = Image("the-cluster")
    for batch in decode_batches(encode_batch(list(records_of(image)), 30, 0)):
        for record in batch.records:
            again.apply(record)
    assert everything(again) == everything(image)


@settings(max_examples=50, deadline=None)
@for_any(histories(), histories())
def test_a_copy_is_the_same_and_goes_its_own_way(history: list[MetadataRecord], more: list[MetadataRecord]) -> None:
    image = given.image(*history)
    before = everything(given.image(*history))
    copy = image.copy()
    assert everything(copy) == before
    assert (copy.offset, copy.cluster_id) == (image.offset, image.cluster_id)
    for record in more:
        with suppress(KeyError):  # a topic of this name may be there
            copy.apply(record)
    assert everything(image) == before


def test_the_records_of_a_snapshot_are_in_the_order_of_kafkas() -> None:
    written: list[MetadataRecord] = [
        DelegationTokenRecord(
            token_id="one",
            owner="User:a",
            requester="User:a",
            renewers=[],
            issue_timestamp=0,
            max_timestamp=0,
            expiration_timestamp=0,
        ),
        UserScramCredentialRecord(name="a", mechanism=1, salt=b"", stored_key=b"", server_key=b"", iterations=0),
        given.acl(b"x" * 16),
        ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
        ClientQuotaRecord(entity=[EntityData(entity_type="user", entity_name="a")], key="k", value=1.0, remove=False),
        FeatureLevelRecord(name="share.version", feature_level=1),
    ]
    image = Image("cluster")
    for record in written:
        image.apply(record)
    assert list(records_of(image)) == written[::-1]
