"""The metadata image: the fold of the metadata log's records, and lookups in it.

`apply` is the only writer. The loader keeps the brokers' image, the fold of all committed records. A controller decides
on an image of its own, which also has its uncommitted records.

Source: Kafka's MetadataImage and the replay methods of its controller's managers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from coordinator.cluster.brokers.info import (
    BrokerRegistration,
    ControllerRegistration,
    broker_from_record,
    changed_broker,
    controller_from_record,
)
from coordinator.cluster.changes import (
    BrokerChanged,
    Change,
    ConfigChanged,
    FeatureChanged,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.record import MetadataRecord
from coordinator.cluster.security.acl import entry_of
from coordinator.cluster.security.acls import Acls
from coordinator.cluster.security.credentials import ScramCredentials
from coordinator.cluster.security.quotas import Quotas
from coordinator.cluster.security.token_keys import DelegationTokens
from coordinator.cluster.topics import names, topic
from coordinator.cluster.topics.by_broker import PartitionsByBroker
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from protocol.metadata_records import nodes, security, settings
from protocol.metadata_records import topics as topic_records
from protocol.types import TopicPartition, Uuid

METADATA_VERSION = "metadata.version"
OLDEST_METADATA_VERSION = 7
"""The metadata.version of a log without a FeatureLevelRecord, 3.3-IV3: the oldest that Kafka 4 can open."""

ELR_VERSION = "eligible.leader.replicas.version"

NO_CONFIGS: Mapping[str, str] = MappingProxyType({})
NO_NAMES: frozenset[str] = frozenset()

SCALARS = ("offset", "epoch", "controller_id", "controller_epoch", "kraft_version", "producer_ids")
"""Attributes whose values a copy shares."""

DRAFTED = (
    "brokers", "controllers", "features", "partitions_in", "directory_owners", "_topics", "_topics_by_id", "_colliding",
    "_configs",
)  # fmt: skip
"""Tables that a draft copies: copying one takes some nanoseconds per entry."""

OTHERS = ("quotas", "acls", "scram_credentials", "delegation_tokens")
"""Tables that a copy copies, and that a draft shares."""


class ProducerIds(NamedTuple):
    """The next producer id to allocate, and the broker that got the last block."""

    next_id: int = 0
    broker_id: int = -1
    broker_epoch: int = -1


class Image:
    """The brokers, topics, partitions, configs and features of a cluster, up to the batch that ends at `offset`."""

    def __init__(self, cluster_id: str) -> None:
        self.cluster_id = cluster_id
        self.offset = -1
        """The offset of the last record of the last applied batch, which the caller of `apply` sets. ApiVersions
        returns it as the epoch of the finalized features.
        """
        self.epoch = 0
        """The quorum's epoch in which that batch was written."""
        self.controller_id = -1
        self.controller_epoch = -1
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        self.features: dict[str, int] = {}
        self.kraft_version = 0
        """The version of the quorum's protocol, which comes from control records, not from metadata records."""
        self.producer_ids = ProducerIds()
        self.quotas = Quotas()
        self.acls = Acls()
        self.scram_credentials = ScramCredentials()
        self.delegation_tokens = DelegationTokens()
        self.partitions_in: Counter[Uuid] = Counter()
        """The number of replicas in each log directory."""
        self.directory_owners: dict[Uuid, int] = {}
        """The broker of each registered log directory."""
        self._topics: dict[str, Topic] = {}
        self._topics_by_id: dict[Uuid, Topic] = {}
        self._colliding: dict[str, frozenset[str]] = {}
        self._configs: dict[ConfigResource, Mapping[str, str]] = {}
        self._owner = object()
        """The owner of the topics that this image may change; it changes a copy of every other topic, which a copy of
        the image may share."""
        self._by_broker: PartitionsByBroker | None = None
        """The index of partitions by broker, computed at its first use, because most images never need it."""

    # Lookups.

    @property
    def metadata_version(self) -> int:
        """The level of metadata.version, which decides the versions of written records."""
        return self.features.get(METADATA_VERSION, OLDEST_METADATA_VERSION)

    @property
    def elr_enabled(self) -> bool:
        """True if partitions have eligible leader replicas (KIP-966)."""
        return self.features.get(ELR_VERSION, 0) > 0

    def topic(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> Topic | None:
        return self._topics_by_id.get(topic_id)

    def topics(self) -> Iterator[Topic]:
        """All topics, in the order of their creation."""
        return iter(self._topics.values())

    def topic_names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self._topics)

    def partition(self, topic_partition: TopicPartition) -> PartitionRegistration | None:
        topic = self._topics.get(topic_partition.topic)
        return None if topic is None else topic.partitions.get(topic_partition.partition)

    @property
    def by_broker(self) -> PartitionsByBroker:
        """The partitions by the brokers that lead them, are in sync, or are eligible. Valid until the next record is
        applied.
        """
        if self._by_broker is None:
            self._by_broker = PartitionsByBroker(self._topics.values())
        return self._by_broker

    def colliding(self, name: str) -> str | None:
        """Returns a topic whose metric names would equal those of a topic with this name; None if there is none."""
        return next(iter(self._colliding.get(names.unified(name), ())), None)

    def configs(self, resource: ConfigResource) -> Mapping[str, str]:
        """Returns the dynamic configs of a resource, by name."""
        return self._configs.get(resource, NO_CONFIGS)

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """Returns the dynamic configs of a topic, by name."""
        return self._configs.get(ConfigResource(ResourceType.TOPIC, name), NO_CONFIGS)

    def configured(self) -> Iterator[ConfigResource]:
        """Yields every resource that has dynamic configs."""
        return iter(self._configs)

    def is_active(self, broker_id: int) -> bool:
        """True if this broker may lead partitions."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.active

    def draft(self) -> Image:
        """Returns a copy to which records of the kinds in DRAFTABLE may be applied, until this image adopts it."""
        draft = Image(self.cluster_id)
        for name in SCALARS:
            setattr(draft, name, getattr(self, name))
        for name in DRAFTED:
            setattr(draft, name, getattr(self, name).copy())
        for name in OTHERS:
            setattr(draft, name, getattr(self, name))
        self._owner = object()
        return draft

    def adopt(self, draft: Image) -> None:
        """Takes over the tables of a draft that was made of this image, which no other record has changed since. The
        draft must not be used any longer."""
        for name in (*DRAFTED, "_owner", "_by_broker"):
            setattr(self, name, getattr(draft, name))

    def copy(self) -> Image:
        """Returns an independent copy, which shares topics until one of the images changes them."""
        other = self.draft()
        for name in OTHERS:
            setattr(other, name, getattr(self, name).copy())
        return other

    def become(self, other: Image) -> None:
        """Replaces the content by another image's, which must not be used any longer."""
        self.adopt(other)
        for name in (*SCALARS, *OTHERS):
            setattr(self, name, getattr(other, name))

    # The only writer.

    def apply(self, record: MetadataRecord) -> Change | None:
        """Applies a record, and returns the change if subscribers need it.

        Raises KeyError for a record about an unknown object: the log is damaged, or the record is applied twice.
        """
        kind = type(record)
        return APPLY[kind](self, record) if kind in APPLY else None

    def _topic_record(self, record: topic_records.TopicRecord) -> Change:
        if record.name in self._topics:
            raise KeyError(f"topic {record.name!r} exists already")
        created = Topic(record.name, record.topic_id, self._owner)
        self._topics[record.name] = self._topics_by_id[record.topic_id] = created
        if names.has_collision_chars(record.name):
            unified = names.unified(record.name)
            self._colliding[unified] = self._colliding.get(unified, NO_NAMES) | {record.name}
        return TopicCreated(created)

    def _own(self, topic_id: Uuid) -> Topic:
        """Returns a topic that only this image has."""
        owned = self._topics_by_id[topic_id]
        if owned.owner is not self._owner:
            owned = owned.copy(self._owner)
            self._topics[owned.name] = self._topics_by_id[topic_id] = owned
        return owned

    def _remove_topic(self, record: topic_records.RemoveTopicRecord) -> Change:
        removed = self._topics_by_id.pop(record.topic_id)
        del self._topics[removed.name]
        self._configs.pop(ConfigResource(ResourceType.TOPIC, removed.name), None)
        for index, partition in removed.partitions.items():
            self.partitions_in.subtract(partition.directories)
            self._index(removed, index, partition, None)
        unified = names.unified(removed.name)
        if unified in self._colliding:
            self._colliding[unified] -= {removed.name}
        return TopicDeleted(removed)

    def _partition_record(self, record: topic_records.PartitionRecord) -> Change:
        owner = self._own(record.topic_id)
        before = owner.partitions.get(record.partition_id)
        after = topic.from_record(record)
        if before is None:
            owner.partitions[record.partition_id] = after
            self.partitions_in.update(after.directories)
            self._index(owner, record.partition_id, None, after)
            return PartitionCreated(owner, record.partition_id, after)
        return self._replace(owner, record.partition_id, after)

    def _partition_change(self, record: topic_records.PartitionChangeRecord) -> Change:
        owner = self._own(record.topic_id)
        return self._replace(owner, record.partition_id, topic.changed(owner.partitions[record.partition_id], record))

    def _replace(self, owner: Topic, index: int, after: PartitionRegistration) -> Change:
        before = owner.partitions[index]
        owner.partitions[index] = after
        if before.directories != after.directories:
            self.partitions_in.subtract(before.directories)
            self.partitions_in.update(after.directories)
        self._index(owner, index, before, after)
        return PartitionChanged(owner, index, before, after)

    def _index(
        self, owner: Topic, index: int, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        if self._by_broker is not None:
            self._by_broker.replace(owner.topic_id, index, before, after)

    def _clear_elr(self, record: topic_records.ClearElrRecord) -> None:
        self._by_broker = None
        cleared = [self._topics[record.topic_name]] if record.topic_name else list(self._topics.values())
        for owner in [self._own(shared.topic_id) for shared in cleared]:
            for index, partition in owner.partitions.items():
                owner.partitions[index] = partition._replace(elr=(), last_known_elr=())

    def _config(self, record: settings.ConfigRecord) -> Change:
        resource = ConfigResource(ResourceType.of(record.resource_type), record.resource_name)
        configs = {**self.configs(resource)}
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
        if configs:
            self._configs[resource] = configs
        else:
            self._configs.pop(resource, None)
        return ConfigChanged(resource, record.name, record.value)

    def _feature(self, record: settings.FeatureLevelRecord) -> Change:
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level
        return FeatureChanged(record.name, record.feature_level)

    def _producer_ids(self, record: settings.ProducerIdsRecord) -> None:
        self.producer_ids = ProducerIds(record.next_producer_id, record.broker_id, record.broker_epoch)

    def _register_broker(self, record: nodes.RegisterBrokerRecord) -> Change:
        return self._put_broker(broker_from_record(record))

    def _change_broker(self, record: nodes.BrokerRegistrationChangeRecord) -> Change:
        return self._put_broker(changed_broker(self.brokers[record.broker_id], record))

    def _fence_broker(self, record: nodes.FenceBrokerRecord | nodes.UnfenceBrokerRecord) -> Change:
        fenced = isinstance(record, nodes.FenceBrokerRecord)
        self.brokers[record.id] = self.brokers[record.id]._replace(fenced=fenced)
        return BrokerChanged(record.id)

    def _unregister_broker(self, record: nodes.UnregisterBrokerRecord) -> Change:
        self._disown(self.brokers.pop(record.broker_id))
        return BrokerChanged(record.broker_id)

    def _put_broker(self, broker: BrokerRegistration) -> Change:
        before = self.brokers.get(broker.broker_id)
        if before is not None:
            self._disown(before)
        self.brokers[broker.broker_id] = broker
        self.directory_owners.update(dict.fromkeys(broker.log_dirs, broker.broker_id))
        return BrokerChanged(broker.broker_id)

    def _disown(self, broker: BrokerRegistration) -> None:
        for directory in broker.log_dirs:
            self.directory_owners.pop(directory, None)

    def _register_controller(self, record: nodes.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = controller_from_record(record)

    def _unregister_controller(self, record: nodes.UnregisterControllerRecord) -> None:
        del self.controllers[record.controller_id]


Applier = Callable[..., Change | None]

APPLY: dict[type, Applier] = {
    topic_records.TopicRecord: Image._topic_record,
    topic_records.RemoveTopicRecord: Image._remove_topic,
    topic_records.PartitionRecord: Image._partition_record,
    topic_records.PartitionChangeRecord: Image._partition_change,
    topic_records.ClearElrRecord: Image._clear_elr,
    settings.ConfigRecord: Image._config,
    settings.FeatureLevelRecord: Image._feature,
    settings.ProducerIdsRecord: Image._producer_ids,
    nodes.RegisterBrokerRecord: Image._register_broker,
    nodes.BrokerRegistrationChangeRecord: Image._change_broker,
    nodes.FenceBrokerRecord: Image._fence_broker,
    nodes.UnfenceBrokerRecord: Image._fence_broker,
    nodes.UnregisterBrokerRecord: Image._unregister_broker,
    nodes.RegisterControllerRecord: Image._register_controller,
    nodes.UnregisterControllerRecord: Image._unregister_controller,
    settings.ClientQuotaRecord: lambda image, record: image.quotas.apply(record),
    security.AccessControlEntryRecord: lambda image, record: image.acls.set(record.id, entry_of(record)),
    security.RemoveAccessControlEntryRecord: lambda image, record: image.acls.remove(record.id),
    security.UserScramCredentialRecord: lambda image, record: image.scram_credentials.set(record),
    security.RemoveUserScramCredentialRecord: lambda image, record: image.scram_credentials.remove(
        record.name, record.mechanism
    ),
    security.DelegationTokenRecord: lambda image, record: image.delegation_tokens.set(record),
    security.RemoveDelegationTokenRecord: lambda image, record: image.delegation_tokens.remove(record.token_id),
}

DRAFTABLE = frozenset(
    {
        topic_records.TopicRecord, topic_records.RemoveTopicRecord, topic_records.PartitionRecord,
        topic_records.PartitionChangeRecord, settings.ConfigRecord, nodes.RegisterBrokerRecord,
        nodes.BrokerRegistrationChangeRecord, nodes.FenceBrokerRecord, nodes.UnfenceBrokerRecord,
        nodes.UnregisterBrokerRecord,
    }
)  # fmt: skip
"""The kinds of records that change only the tables in DRAFTED."""
