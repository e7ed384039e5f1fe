"""Sends the same requests about quotas, credentials and access control to Odradek and to Apache Kafka: the answers are
equal."""

from __future__ import annotations

import itertools

import pytest

from protocol.messages import alter_client_quotas as quotas
from protocol.messages import alter_user_scram_credentials as scram
from protocol.messages import create_acls as create
from protocol.messages import create_topics, metadata
from protocol.messages import delete_acls as delete
from protocol.messages import describe_acls as describe
from protocol.messages import describe_client_quotas as describe_quotas
from protocol.messages import describe_user_scram_credentials as describe_scram
from tests.interop.brokers import ApacheKafka, Odradek
from tests.interop.test_admin_answers import Step, plain
from tests.waiting import wait_until
from tests.wire import WireClient

pytestmark = pytest.mark.odradek_only

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

SHA_256, SHA_512 = 1, 2
EXACT, DEFAULT, SPECIFIED = range(3)


def quota(entity: dict[str, str | None], *ops: tuple[str, float | None]) -> quotas.EntryData:
    """Returns a request that sets quotas of an entity, or removes those whose value is None."""
    return quotas.EntryData(
        entity=[quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[quotas.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def limiting(name: str, *entries: quotas.EntryData, validate_only: bool = False, version: int = 1) -> Step:
    request = quotas.AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return Step(name, request, quotas.AlterClientQuotasResponse, version)


def limits(name: str, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Step:
    filters = [
        describe_quotas.ComponentData(entity_type=kind, match_type=match, match=value)
        for kind, match, value in components
    ]
    request = describe_quotas.DescribeClientQuotasRequest(components=filters, strict=strict)
    return Step(name, request, describe_quotas.DescribeClientQuotasResponse, version)


def credential(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> scram.ScramCredentialUpsertion:
    return scram.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def crediting(
    name: str, *upsertions: scram.ScramCredentialUpsertion, without: tuple[tuple[str, int], ...] = ()
) -> Step:
    deletions = [scram.ScramCredentialDeletion(name=user, mechanism=mechanism) for user, mechanism in without]
    request = scram.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=list(upsertions))
    return Step(name, request, scram.AlterUserScramCredentialsResponse, 0)


def credentials(name: str, *users: str) -> Step:
    named = [describe_scram.UserName(name=user) for user in users]
    request = describe_scram.DescribeUserScramCredentialsRequest(users=named)
    return Step(name, request, describe_scram.DescribeUserScramCredentialsResponse, 0)


BAD_QUOTAS: tuple[tuple[dict[str, str | None], str, float], ...] = (
    ({}, "producer_byte_rate", 1),
    ({"group": "g"}, "producer_byte_rate", 1),
    ({"user": ""}, "producer_byte_rate", 1),
    ({"ip": "127.0.0.1", "user": "a"}, "connection_creation_rate", 1),
    ({"user": "a"}, "connection_creation_rate", 1),
    ({"ip": None}, "producer_byte_rate", 1),
    ({"user": "a"}, "producer_byte_rate", 0),
    ({"user": "a"}, "producer_byte_rate", 1.5),
    ({"user": "a"}, "producer_byte_rate", 1e19),
    ({"user": "a"}, "request_percentage", -1),
    ({"ip": None}, "connection_creation_rate", 2.0**31),
    ({"ip": None}, "connection_creation_rate", 1.5),
)

BAD_FILTERS: tuple[list[tuple[str, int, str | None]], ...] = (
    [("", EXACT, "a")],
    [("user", EXACT, None)],
    [("user", DEFAULT, "a")],
    [("user", SPECIFIED, "a")],
    [("user", 3, "a")],
    [("user", EXACT, "a"), ("user", DEFAULT, None)],
    [("user", EXACT, "a"), ("ip", EXACT, "b")],
    [("group", EXACT, "a")],
)

QUOTA_STEPS = (
    limiting("quotas", quota({"user": "a"}, ("producer_byte_rate", 1e6), ("request_percentage", 12.5)), version=0),
    limiting("a quota of two parts", quota({"user": "a", "client-id": None}, ("consumer_byte_rate", 2e6))),
    limiting("quotas of addresses", quota({"ip": "127.0.0.1"}, ("connection_creation_rate", 1e5)), quota({"ip": None})),
    limiting("quotas of no ops", quota({"user": "nothing"})),
    limiting("an absent quota removed", quota({"user": "z"}, ("producer_byte_rate", None), ("no.such", None))),
    limiting("a validation of quotas", quota({"user": "v"}, ("producer_byte_rate", 1e6)), validate_only=True),
    limiting(
        "a quota twice",
        quota({"user": "v", "client-id": "w"}, ("producer_byte_rate", 1e6), ("producer_byte_rate", 1e6)),
    ),
    limiting("an entity twice", *[quota({"user": "t"}, ("controller_mutation_rate", value)) for value in (1e6, 2e6)]),
    *(limiting(f"bad quota {at}", quota(entity, (key, value))) for at, (entity, key, value) in enumerate(BAD_QUOTAS)),
    limits("all quotas", version=0),
    limits("a user's", ("user", EXACT, "a")),
    limits("strictly a user's", ("user", EXACT, "a"), strict=True),
    limits("default clients'", ("client-id", DEFAULT, None)),
    limits("any user's", ("user", SPECIFIED, None), strict=True),
    limits("addresses'", ("ip", SPECIFIED, None)),
    *(limits(f"badly filtered {at}", *filters) for at, filters in enumerate(BAD_FILTERS)),
    limiting("a quota removed", quota({"user": "a"}, ("producer_byte_rate", None))),
    limits("what is left"),
)

SCRAM_STEPS = (
    credentials("no credentials"),
    crediting("credentials", credential("alice"), credential("bob", SHA_512, 8192)),
    crediting("another mechanism", credential("alice", SHA_512)),
    crediting("a user twice", credential("carol"), credential("carol", SHA_512), credential("dora")),
    crediting("set and removed", credential("alice"), without=(("alice", SHA_256),)),
    crediting("too few iterations", credential("x", iterations=4095)),
    crediting("too many iterations", credential("x", iterations=16385)),
    crediting("an unknown mechanism", credential("x", 3), without=(("y", 0),)),
    crediting("no name", credential("")),
    crediting("an absent credential removed", without=(("nobody", SHA_256),)),
    credentials("all credentials"),
    credentials("some credentials", "alice", "nobody"),
    credentials("credentials twice", "alice", "alice", "bob"),
    crediting("a credential removed", without=(("alice", SHA_256),)),
    credentials("the other mechanism", "alice"),
)


def entry(*parts: int | str) -> create.AclCreation:
    """Returns an entry: resource type, name, pattern type, principal, host, operation, permission."""
    return create.AclCreation(**dict(zip(ENTRY_FIELDS, parts, strict=True)))  # type: ignore[arg-type]


def adding(name: str, *entries: create.AclCreation, version: int = 3) -> Step:
    return Step(name, create.CreateAclsRequest(creations=list(entries)), create.CreateAclsResponse, version)


def describing(name: str, *parts: int | str | None, version: int = 3) -> Step:
    """Returns a DescribeAcls request with a filter, whose parts have the order of an entry's."""
    request = describe.DescribeAclsRequest(**dict(zip(FILTER_FIELDS, parts, strict=True)))  # type: ignore[arg-type]
    return Step(name, request, describe.DescribeAclsResponse, version)


def deleting(name: str, *filters: tuple[int | str | None, ...], version: int = 3) -> Step:
    entry_filters = [
        delete.DeleteAclsFilter(**dict(zip(FILTER_FIELDS, parts, strict=True)))  # type: ignore[arg-type]
        for parts in filters
    ]
    return Step(name, delete.DeleteAclsRequest(filters=entry_filters), delete.DeleteAclsResponse, version)


ENTRY_FIELDS = (
    "resource_type", "resource_name", "resource_pattern_type", "principal", "host", "operation", "permission_type",
)  # fmt: skip
FILTER_FIELDS = (
    "resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter",
    "operation", "permission_type",
)  # fmt: skip
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPICS, GROUPS, CLUSTERS, TRANSACTIONS, TOKENS, USERS = range(2, 8)
READ, WRITE, CREATE_TOKENS = 3, 4, 13
DENY, ALLOW = 2, 3
GOOD = (TOPICS, "a", LITERAL, "User:alice", "*", READ, ALLOW)

BAD_ENTRIES: tuple[tuple[int | str, ...], ...] = (
    (CLUSTERS, "other", LITERAL, "User:alice", "*", READ, ALLOW),
    (TOPICS, "", LITERAL, "User:alice", "*", READ, ALLOW),
    (99, "a", LITERAL, "User:alice", "*", READ, ALLOW),
    (TOPICS, "a", 99, "User:alice", "*", READ, ALLOW),
    (TOPICS, "a", LITERAL, "alice", "*", READ, ALLOW),
    (TOPICS, "a", LITERAL, "", "*", READ, ALLOW),
    (TOPICS, "a", LITERAL, "User:alice", "", READ, ALLOW),
    (TOPICS, "a", LITERAL, "User:alice", "*", 99, ALLOW),
    (TOPICS, "a", LITERAL, "User:alice", "*", READ, 99),
)
ACL_STEPS = (
    describing("no entries", ANY, None, ANY, None, None, ANY, ANY),
    adding("an entry", entry(*GOOD), version=1),
    adding("it again, and twice another", entry(*GOOD), *[entry(TOPICS, "b", PREFIXED, *GOOD[3:])] * 2),
    adding("an entry of an address", entry(TOPICS, "*", LITERAL, "User:bob", "10.0.0.1", 2, DENY), version=1),
    adding(
        "of every type",
        entry(GROUPS, "g", PREFIXED, *GOOD[3:]),
        entry(CLUSTERS, "kafka-cluster", LITERAL, *GOOD[3:]),
        entry(TRANSACTIONS, "t", LITERAL, "User:*", "*", WRITE, DENY),
        entry(TOKENS, "token", LITERAL, *GOOD[3:]),
        entry(USERS, "User:carol", LITERAL, "User:alice", "*", CREATE_TOKENS, ALLOW),
    ),
    *(adding(f"bad entry {at}", entry(*parts)) for at, parts in enumerate(BAD_ENTRIES)),
    describing("all entries", ANY, None, ANY, None, None, ANY, ANY),
    describing("literal entries", ANY, None, LITERAL, None, None, ANY, ANY),
    describing("entries that match a topic", TOPICS, "bcd", MATCH, None, None, ANY, ANY),
    describing("entries of a name", TOPICS, "b", ANY, None, None, ANY, ANY),
    describing("alice's entries", ANY, None, ANY, "User:alice", None, READ, ALLOW),
    describing("a host's entries", ANY, None, ANY, None, "10.0.0.1", ANY, DENY),
    describing("topics' entries", TOPICS, None, ANY, None, None, ANY, ANY, version=1),
    deleting("entries by unknown types", (99, None, ANY, None, None, ANY, ANY), (ANY, None, ANY, None, None, 99, ANY)),
    deleting("two filters", (TOPICS, "bcd", MATCH, None, None, ANY, ANY), (TOPICS, "b", ANY, None, None, ANY, ANY)),
    deleting("groups' entries", (GROUPS, None, ANY, None, None, ANY, ANY), version=1),
    describing("what is left of them", ANY, None, ANY, None, None, ANY, ANY),
)

READS = (
    describe_quotas.DescribeClientQuotasRequest, describe_scram.DescribeUserScramCredentialsRequest,
    describe.DescribeAclsRequest,
)  # fmt: skip
SCRIPT = (*QUOTA_STEPS, *SCRAM_STEPS, *ACL_STEPS)


def answer(client: WireClient, step: Step) -> object:
    try:
        return plain(client.ask(step.request, step.response, step.version))
    except ConnectionError as error:
        error.add_note(f"the connection was closed over: {step.name}")
        raise


def let_it_read(client: WireClient, number: int) -> None:
    """Waits until a broker has read all changes so far: Apache Kafka answers once its controller has them."""
    topic = create_topics.CreatableTopic(
        name=f"read-{number}", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    client.ask(
        create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), create_topics.CreateTopicsResponse, 7
    )
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False
    )
    wait_until(
        lambda: not client.ask(request, metadata.MetadataResponse, 9).topics[0].error_code,
        lambda: f"{topic.name} is read",
    )


def answers(broker: ApacheKafka | Odradek) -> list[object]:
    broker.start()
    given: list[object] = []
    try:
        client = WireClient(broker.bootstrap)
        try:
            for before, step in itertools.pairwise((SCRIPT[0], *SCRIPT)):
                if isinstance(step.request, READS) and not isinstance(before.request, READS):
                    let_it_read(client, len(given))
                given.append(answer(client, step))
            return given
        finally:
            client.close()
    finally:
        broker.stop()
        broker.forget()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], list[object]]:
    """Returns the answers of Apache Kafka, and of Odradek."""
    folder = tmp_path_factory.mktemp("security")
    ours = Odradek(folder / "ours", {"odradek.profile": "production", **PROPERTIES})
    return answers(ApacheKafka(folder / "theirs", PROPERTIES)), answers(ours)


@pytest.mark.parametrize("step", range(len(SCRIPT)), ids=[f"{step.name}".replace(" ", "-") for step in SCRIPT])
def test_an_answer_is_kafka_s(both: tuple[list[object], list[object]], step: int) -> None:
    kafka_s, ours = both
    assert ours[step] == kafka_s[step]
