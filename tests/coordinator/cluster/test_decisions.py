"""Tests the table of decisions: each is a pure function, so it can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any, Final, NamedTuple

import pytest

from broker.handlers.controller import CONTROLLER_APIS
from coordinator.cluster.brokers.heartbeat import broker_heartbeat
from coordinator.cluster.brokers.registration import register_broker
from coordinator.cluster.brokers.sessions import BrokerSessions
from coordinator.cluster.controller import Asker
from coordinator.cluster.decisions import DECISIONS, DecisionState, decide
from coordinator.cluster.duties import Duties
from coordinator.cluster.image import Image
from coordinator.cluster.options import TokenRules
from coordinator.cluster.record import ClusterResult
from coordinator.cluster.requester import Requester
from coordinator.cluster.security.mutation_quota import MutationQuota, TokenBucket
from coordinator.cluster.security.token_keys import token_key
from coordinator.engine.result import Result, Ticket
from protocol.api_key import ApiKey
from protocol.errors import KafkaError
from protocol.messages import alter_configs as legacy
from protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, DirectoryData
from protocol.messages.assign_replicas_to_dirs import PartitionData as PlacedPartition
from protocol.messages.assign_replicas_to_dirs import TopicData as PlacedTopic
from protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from protocol.messages.controller_registration import ControllerRegistrationRequest, Listener
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreateTopicsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.types import uuid_to_text
from tests.broker import extremes
from tests.coordinator.cluster import given
from tests.coordinator.cluster.given import NODE, OPTIONS, RULES, TOPIC_ID
from tests.coordinator.purity import picture

ALICE = Requester("User", "alice", "a-client", "127.0.0.1")
NOW_MS = 1_700_000_000_000
SECRET = "secret"
TOPIC = extremes.TOPIC
OTHER = 7
"""The broker of plausible requests."""

OTHER_DIRECTORY = b"directory-seven-"
TIMEOUT_MS = 1_000
TICKET: Final[Ticket[object]] = Ticket()


class Rejected(NamedTuple):
    """An error that rejects the whole request."""

    code: int
    message: str


def uuids() -> Callable[[], bytes]:
    return given.ids(*(b"uuid-%011d" % number for number in range(100)))


def sessions_of(image: Image) -> BrokerSessions:
    """Returns the sessions of a controller that was just activated."""
    sessions = given.sessions(image, OPTIONS.broker_session_timeout_ms)
    sessions.begin(image, 0)
    return sessions


def state(image: Image, sessions: BrokerSessions) -> DecisionState:
    options = OPTIONS._replace(tokens=TokenRules(SECRET))
    return DecisionState(image, sessions, options, RULES, uuids(), NOW_MS, 5, lambda _: None)


def result(image: Image, sessions: BrokerSessions, request: object) -> ClusterResult | Rejected:
    """Returns the decision on a request, or the error that rejects all of it."""
    try:
        return decide(state(image, sessions), request, TICKET, Asker(ALICE))
    except KafkaError as error:
        return Rejected(error.code, error.message)


def acl(principal: str) -> AclCreation:
    return AclCreation(
        resource_type=2,
        resource_name=TOPIC,
        resource_pattern_type=3,
        principal=principal,
        host="*",
        operation=3,
        permission_type=3,
    )


def cluster() -> Image:
    """Returns two unfenced brokers, a topic whose preferred leader does not lead, an access control entry, a
    delegation token, and another controller."""
    image = given.image()
    registration = given.registration(OTHER, log_dirs=[OTHER_DIRECTORY])
    given.apply(image, register_broker(image, registration, RULES)[0])
    given.apply(image, broker_heartbeat(image, given.heartbeat(image, OTHER), RULES)[0])
    given.apply(image, given.topic(TOPIC, partitions=2, replicas=(OTHER, NODE), isr=(OTHER, NODE), leader=NODE))
    for request in (
        CreateAclsRequest(creations=[acl("User:bob")]),
        ACCEPTED[ApiKey.CREATE_DELEGATION_TOKEN],
        ACCEPTED[ApiKey.CONTROLLER_REGISTRATION],
    ):
        given.apply(image, decide(state(image, sessions_of(image)), request, TICKET, Asker(ALICE)).records)
    return image


TOKEN: Final = token_key(SECRET, uuid_to_text(uuids()()))
ACCEPTED: Final[dict[ApiKey, object]] = {
    ApiKey.CREATE_TOPICS: CreateTopicsRequest(topics=[given.creatable("new")], timeout_ms=TIMEOUT_MS),
    ApiKey.DELETE_TOPICS: DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=TIMEOUT_MS),
    ApiKey.CREATE_PARTITIONS: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)],
        timeout_ms=TIMEOUT_MS,
        validate_only=False,
    ),
    ApiKey.ALTER_CONFIGS: AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsResource(
                resource_type=2,
                resource_name=TOPIC,
                configs=[legacy.AlterableConfig(name="retention.ms", value="5")],
            )
        ],
        validate_only=False,
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=2,
                resource_name=TOPIC,
                configs=[AlterableConfig(name="retention.ms", config_operation=0, value="5")],
            )
        ],
        validate_only=False,
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="alice")],
                ops=[OpData(key="producer_byte_rate", value=1000.0, remove=False)],
            )
        ],
        validate_only=False,
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AlterUserScramCredentialsRequest(
        deletions=[],
        upsertions=[
            ScramCredentialUpsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"a-salt", salted_password=bytes(32)
            )
        ],
    ),
    ApiKey.CREATE_ACLS: CreateAclsRequest(creations=[acl("User:alice")]),
    ApiKey.DELETE_ACLS: DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=2,
                resource_name_filter=TOPIC,
                pattern_type_filter=3,
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1),
    ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenRequest(hmac=TOKEN, renew_period_ms=1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenRequest(hmac=TOKEN, expiry_time_period_ms=1),
    ApiKey.ELECT_LEADERS: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=TOPIC, partitions=[0])], timeout_ms=TIMEOUT_MS
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(name=TOPIC, partitions=[ReassignablePartition(partition_index=0, replicas=[NODE, OTHER])])
        ],
        timeout_ms=TIMEOUT_MS,
    ),
    ApiKey.UPDATE_FEATURES: UpdateFeaturesRequest(
        timeout_ms=TIMEOUT_MS,
        feature_updates=[FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)],
    ),
    ApiKey.UNREGISTER_BROKER: UnregisterBrokerRequest(broker_id=OTHER),
    ApiKey.BROKER_REGISTRATION: given.registration(9, log_dirs=[b"directory-nine--"]),
    ApiKey.BROKER_HEARTBEAT: BrokerHeartbeatRequest(
        broker_id=OTHER, want_fence=True, want_shut_down=False, current_metadata_offset=0
    ),
    ApiKey.ALTER_PARTITION: AlterPartitionRequest(
        broker_id=NODE,
        topics=[
            TopicData(
                topic_id=TOPIC_ID,
                partitions=[
                    PartitionData(
                        partition_index=0,
                        new_isr_with_epochs=[BrokerState(broker_id=NODE)],
                        leader_epoch=0,
                        partition_epoch=0,
                    )
                ],
            )
        ],
    ),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: AssignReplicasToDirsRequest(
        broker_id=OTHER,
        directories=[
            DirectoryData(
                id=OTHER_DIRECTORY,
                topics=[PlacedTopic(topic_id=TOPIC_ID, partitions=[PlacedPartition(partition_index=0)])],
            )
        ],
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: AllocateProducerIdsRequest(broker_id=OTHER),
    ApiKey.CONTROLLER_REGISTRATION: ControllerRegistrationRequest(
        controller_id=8,
        incarnation_id=b"controller-eight",
        listeners=[Listener(name="CONTROLLER", host="127.0.0.1", port=9093, security_protocol=0)],
        features=[],
        zk_migration_ready=False,
    ),
    ApiKey.UNREGISTER_CONTROLLER: UnregisterControllerRequest(controller_id=8),
}
"""A request with which each decision writes records; broker epochs are filled in."""


def requests(key: ApiKey, image: Image) -> Iterator[Any]:
    """Yields requests as a client could send them, most with one extreme number."""
    api = CONTROLLER_APIS.find(key)
    assert api is not None
    version = api.versions.last
    yield extremes.plausible(api.request, version, TOPIC_ID)
    for extreme in extremes.extremes(api.request, version):
        yield with_epoch(extreme.build(TOPIC_ID), image)


def with_epoch(request: Any, image: Image) -> Any:
    """Fills in the epoch of the broker that sends the request."""
    if hasattr(request, "broker_epoch") and request.broker_epoch in (-1, 0) and request.broker_id in image.brokers:
        request.broker_epoch = image.brokers[request.broker_id].epoch
    return request


decisions = pytest.mark.parametrize("key", DECISIONS, ids=lambda key: key.name)


@decisions
def test_a_decision_that_is_made_again_without_its_records_is_the_same(key: ApiKey) -> None:
    image = cluster()
    sessions = sessions_of(image)
    before = deepcopy(vars(sessions))
    for request in (with_epoch(copy(ACCEPTED[key]), image), *requests(key, image)):
        assert picture(result(image, sessions, request)) == picture(result(image, sessions, request))
    assert vars(sessions) == before


@decisions
def test_each_request_has_a_decision_that_writes_records(key: ApiKey) -> None:
    image = cluster()
    decided = result(image, sessions_of(image), with_epoch(copy(ACCEPTED[key]), image))
    assert isinstance(decided, Result)
    assert decided.records


LATER_MS: Final = 10 * 24 * 3_600_000
"""Longer than any session, period or delegation token."""


def test_each_duty_is_decided_twice_alike() -> None:
    image = cluster()
    sessions = sessions_of(image)
    options = OPTIONS._replace(tokens=TokenRules(SECRET))
    duties = Duties(options, RULES, sessions, lambda: NOW_MS + LATER_MS)
    duties.begin(0)
    duties.note_idle(image)
    records: dict[str, int] = {}
    while (duty := duties.due(image, LATER_MS)) is not None:
        before = deepcopy((vars(sessions), duties._due, duties._idle_at))
        first, second = (duty.decide(image, LATER_MS) for _ in range(2))
        assert picture(first) == picture(second)
        assert (vars(sessions), duties._due, duties._idle_at) == before
        records[duty.name] = len(first[0].records)
        duties.done(duty, LATER_MS, more=False)
    assert records.keys() == {duty.name for duty in duties._all(options)}
    assert [name for name, count in records.items() if not count] == ["elect unclean leaders"]


CHARGED: Final = (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS)


@pytest.mark.parametrize("key", CHARGED, ids=lambda key: key.name)
def test_a_decision_that_is_made_again_takes_tokens_once(key: ApiKey) -> None:
    image, bucket, rate, now_ms = cluster(), TokenBucket(10), 1.0, 0
    quota = MutationQuota(bucket, rate, now_ms, is_strict=True)
    request = ACCEPTED[key]
    first, second = (
        decide(state(image, sessions_of(image)), copy(request), TICKET, Asker(ALICE, quota=quota)) for _ in range(2)
    )
    assert bucket.tokens(rate, now_ms) == 10
    assert first.records == second.records
    for effect in second.effects:
        effect()
    assert bucket.tokens(rate, now_ms) < 10
