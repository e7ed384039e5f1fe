"""The requests that fuzzing leaves out, because they may rightly harm every client: orders of an administrator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.handlers import APIS
from protocol.api_key import ApiKey
from tests.fuzz.vocabulary import INTERNAL, Vocabulary

MOST_PARTITIONS, TOO_MANY_PARTITIONS = 4, 20_000
BROKER_WIDE: Final = (4, 8)
"""Config resources of the broker: the broker itself, and its loggers."""

NOBODYS: Final = ("", "1", "2")
"""Names of config resources that belong to no world."""


def tame(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Changes a request that would rightly harm others to a harmless one; False if it must not be sent."""
    rule = RULES.get(type(request).__name__)
    return rule is None or rule(request, version, vocabulary)


def spare_internal_topics(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Leaves internal topics out, because their deletion deletes the offsets of all groups."""
    topic_ids = set(vocabulary.topic_ids.values())
    for topic in request.topics or ():
        if topic.name in INTERNAL:
            topic.name = "nowhere"
        if topic.topic_id not in topic_ids:
            topic.topic_id = bytes(16)
    request.topic_names = ["nowhere" if name in INTERNAL else name for name in request.topic_names]
    return True


def only_try(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Makes changes of shared configs, or of internal topics' configs, validate only."""
    if any(one.resource_type in BROKER_WIDE or one.resource_name in (*INTERNAL, *NOBODYS) for one in request.resources):
        request.validate_only = True
    return True


def only_own_quotas(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Makes changes of quotas that apply to others, or throttle them, validate only."""
    names = [part.entity_name for entry in request.entries for part in entry.entity]
    kinds = {part.entity_type for entry in request.entries for part in entry.entity}
    if kinds != {"client-id"} or not all(names):
        request.validate_only = True
    return True


def no_downgrade(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """True unless the request turns a feature off, which removes its groups."""
    request.validate_only = True
    return version >= 1


def few_partitions(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Limits the number of partitions: thousands may be created, which takes long; more are rejected."""
    for topic in request.topics:
        if MOST_PARTITIONS < topic.num_partitions < TOO_MANY_PARTITIONS:
            topic.num_partitions = MOST_PARTITIONS
    return not MOST_PARTITIONS * 4 <= len(request.topics) < TOO_MANY_PARTITIONS


def few_partitions_of_tasks(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Limits the number of partitions of the internal topics that a streams group creates."""
    for subtopology in request.topology.subtopologies if request.topology is not None else ():
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            if MOST_PARTITIONS < topic.partitions < TOO_MANY_PARTITIONS:
                topic.partitions = MOST_PARTITIONS
    return True


def few_more_partitions(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """Leaves internal topics out, because their new partitions would affect all clients."""
    for topic in request.topics:
        if topic.name in INTERNAL:
            topic.name = "nowhere"
        if MOST_PARTITIONS < topic.count < TOO_MANY_PARTITIONS:
            topic.count = MOST_PARTITIONS
    return True


def markers_of_our_own(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    """True for markers of our own producers: a marker of another client's producer would end its transaction."""
    ours = {one.producer_id for one in vocabulary.transactionals}
    return all(marker.producer_id in ours for marker in request.markers)


def not_this_broker(request: Any, version: int, vocabulary: Vocabulary) -> bool:
    return bool(request.broker_id != 1)


Rule = Callable[[Any, int, Vocabulary], bool]
RULES: Final[Mapping[str, Rule]] = {
    "DeleteTopicsRequest": spare_internal_topics,
    "AlterConfigsRequest": only_try,
    "IncrementalAlterConfigsRequest": only_try,
    "AlterClientQuotasRequest": only_own_quotas,
    "UpdateFeaturesRequest": no_downgrade,
    "CreateTopicsRequest": few_partitions,
    "CreatePartitionsRequest": few_more_partitions,
    "StreamsGroupHeartbeatRequest": few_partitions_of_tasks,
    "WriteTxnMarkersRequest": markers_of_our_own,
    "UnregisterBrokerRequest": not_this_broker,
}
KEYS: Final = frozenset(int(api.key) for api in APIS if api.request.__name__ in RULES)
"""The APIs whose garbled frames are parsed and checked."""

assert ApiKey.DELETE_TOPICS in KEYS
