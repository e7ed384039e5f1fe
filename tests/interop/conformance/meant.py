"""The allowed differences, each with its reason. Every other difference is a bug."""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.conformance.compare import Allowed

ANYWHERE = r".*"

NOT_IMITATED = "Apache Kafka fails over it (UNKNOWN_SERVER_ERROR); here it is a bad record like others"

PRODUCED: Mapping[str, tuple[Allowed, ...]] = {
    "an unknown codec": (Allowed(ANYWHERE, NOT_IMITATED),),
    "gzip that is not": (Allowed(ANYWHERE, NOT_IMITATED),),
    "records that are noise": (Allowed(ANYWHERE, NOT_IMITATED),),
    "timestamps beyond time": (
        Allowed(r"ProduceRequest v[0-2] .*", "since Kafka 4 message.timestamp.after.max.ms is an hour by default"),
        Allowed(r"FetchRequest .*\.(high_watermark|last_stable_offset|records)", "as above"),
    ),
}
"""Differences by the name of a case in test_produce.py."""

POISONED = (Allowed(r"ProduceRequest .*\.error_code", NOT_IMITATED, ours=87, theirs=-1),)

UNREADABLE = (
    Allowed(ANYWHERE, "Apache Kafka does not look at a compressed record's length, and no consumer can read the batch"),
)
STRICTER: Mapping[str, tuple[Allowed, ...]] = {
    "a length too large": UNREADABLE,
    "a length too small": UNREADABLE,
    "a length of 0": UNREADABLE,
    "a wrong content checksum": (
        Allowed(ANYWHERE, "Java's reader passes over an LZ4 frame's checksum; consumers with liblz4 do not"),
    ),
}
"""Batches of test_poison.py that only Apache Kafka accepts, by the part of the name after the codec."""

OLD_MESSAGES: Mapping[str, tuple[Allowed, ...]] = {
    "a batch's magic": (
        Allowed(
            r"ProduceRequest .*\.error_code",
            "a message is shorter than a batch's header, beyond whose end Apache Kafka reads",
            ours=2,
        ),
    ),
    "a timestamp below -1": (Allowed(r"ProduceRequest .*\.error_code", NOT_IMITATED, ours=32, theirs=-1),),
}
"""Message sets of test_poison_messages.py, by the part of the name after the codec."""

FETCHED: Mapping[str, tuple[Allowed, ...]] = {
    "a negative size": (Allowed(ANYWHERE, "Apache Kafka fails over it; here it is no bytes, or one batch at least"),),
    "a negative size in all": (Allowed(ANYWHERE, "as for a partition"),),
    "another isolation": (Allowed(ANYWHERE, "Apache Kafka fails over it; here all but read_committed is uncommitted"),),
}
"""Differences by the name of a case in test_fetch.py."""


def begins_with(ours: object, theirs: object) -> bool:
    return isinstance(ours, list) and isinstance(theirs, list) and ours[: len(theirs)] == theirs


def has_kraft_version_too(ours: object, theirs: object) -> bool:
    return isinstance(ours, list) and [one for one in ours if one["name"] != "kraft.version"] == theirs


def says_what_java_says(ours: object, theirs: object) -> bool:
    """True for two messages about a value that Java can't parse."""
    return bool(ours) and isinstance(theirs, str) and any(words in theirs for words in JAVA_FAILURES)


JAVA_FAILURES = ("could not be found.", "Error parsing configuration property")

MEANT: tuple[Allowed, ...] = (
    Allowed(
        r"IncrementalAlterConfigsRequest .*\.error_message",
        "a class of Java is not looked for, and what is wrong with an address is said",
        where_so=says_what_java_says,
    ),
    Allowed(r"DescribeConfigsRequest v0 .*\.is_default", "Kafka 3 left it out", ours=True, theirs=False),
    Allowed(
        r"FetchRequest v[0-3] .*\.records",
        "Kafka cuts what it converts down where the batches would have ended, and gives nothing of a first batch that "
        "is larger than the fetch; here all that was asked for is converted, and the first batch comes whole",
        where_so=begins_with,
    ),
    Allowed(
        r"FetchRequest v[0-3] .*\.records",
        "no records are an empty set, as clients of these versions expect, where Kafka has null",
        ours=[],
        theirs=None,
    ),
    Allowed(
        r"DescribeQuorumRequest v2 .*\.replica_directory_id",
        "the voters of this Kafka are in its configuration, those of Odradek in its log",
        theirs="none",
    ),
    Allowed(
        r"ApiVersionsRequest .*\.finalized_features",
        "Kafka does not name kraft.version 0, which it has where the voters are in its configuration",
        where_so=has_kraft_version_too,
    ),
    Allowed(
        r"OffsetFetchRequest v(9|10) .*\.groups\[\d+\]\.error_code",
        "Apache Kafka fails over a member epoch without a member id; here no member has that id",
        ours=25,
        theirs=-1,
    ),
    Allowed(r"DescribeTopicPartitionsRequest .*\.error_code", NOT_IMITATED, ours=17, theirs=-1),
    Allowed(r"DescribeTopicPartitionsRequest .*\.topic_authorized_operations", NOT_IMITATED, theirs=-2147483648),
    Allowed(r"ApiVersionsRequest .*\.api_keys.*", "older versions are served too; test_what_is_served compares them"),
    Allowed(
        r"ProduceRequest .*batch_index_error_message",
        "Kafka prints a Java object before the same words",
        ours="Producer should not set timestamp type to LogAppendTime.",
    ),
)

LISTED: Mapping[str, tuple[Allowed, ...]] = {
    "offsets-none": (
        Allowed(r"ListOffsetsRequest .*", "no record has a timestamp: Kafka names the first, of timestamp -1", ours=-1),
    ),
    "offsets-all-deleted": (
        Allowed(r"ListOffsetsRequest .*", "Kafka names a record below the log start offset", ours=-1),
    ),
}
"""Differences by the name of a topic in test_offsets.py."""

NO_NAME_AND_NO_ID = (
    Allowed(r"MetadataRequest v1[23] \.(brokers|cluster_id|controller_id|error_code)", NOT_IMITATED),
    Allowed(r"MetadataRequest v1[23] \.topics.*", NOT_IMITATED),
)
AT_ONCE = "a topic is created before the answer; Kafka answers UNKNOWN_TOPIC_OR_PARTITION, and clients ask once more"
CREATED_AT_ONCE = (
    Allowed(r"MetadataRequest .*\.topics\[0\]\.error_code", AT_ONCE, ours=0, theirs=3),
    Allowed(r"MetadataRequest .*\.topics\[0\]\.error_code", AT_ONCE, ours=17, theirs=3),
    Allowed(r"MetadataRequest .*\.topics\[0\]\.partitions", AT_ONCE, theirs=[]),
    Allowed(r"MetadataRequest .*\.topics\[0\]\.topic_id", AT_ONCE, ours="some id", theirs="none"),
)

CREATED: Mapping[str, tuple[Allowed, ...]] = {
    "a segment too small": (Allowed(r"CreateTopicsRequest v[01] .*error_message", "since Kafka 4 the least is 1 MiB"),),
    "more replicas than brokers": (
        Allowed(
            r"CreateTopicsRequest .*", "on one node the replication factor is clamped to the brokers that there are"
        ),
    ),
}
"""Differences by the name of a case in test_topics.py."""

GROWN: tuple[Allowed, ...] = (
    Allowed(
        r"CreatePartitionsRequest .*\.error_code",
        "Kafka adds as many as fit into one batch, and answers UNKNOWN_SERVER_ERROR; here none is added, as with "
        "CreateTopics",
        ours=44,
        theirs=-1,
    ),
    Allowed(
        r"CreatePartitionsRequest .*\.error_message",
        "as above",
        ours="Unable to perform excessively large batch operation.",
        theirs=None,
    ),
)
"""Differences if a request asks for more partitions than allowed."""

NO_OPERATION = (
    Allowed(
        r"IncrementalAlterConfigsRequest .*",
        "Kafka fails over an operation that there is not, for the whole request; here for its resource",
        theirs=-1,
    ),
    Allowed(r"IncrementalAlterConfigsRequest .*\.error_message", "as above", theirs=None),
)
NO_REPORTERS = (
    Allowed(
        r"IncrementalAlterConfigsRequest .*",
        "reporters of metrics are Java classes: the option is no other but the one it starts with",
        ours=42,
        theirs=0,
    ),
    Allowed(
        r"IncrementalAlterConfigsRequest .*\.error_message",
        "as above",
        ours="Cannot update these configs dynamically: [metric.reporters]",
    ),
)
GROWING = "Kafka's coordinators go on with the old number, and after a start find nothing of what they had"
NOT_GROWN = (
    Allowed(r"CreatePartitionsRequest .*\.error_code", GROWING, ours=37),
    Allowed(r"CreatePartitionsRequest .*\.error_message", GROWING),
)

NOTHING_TO_TELL = (
    Allowed(
        r"DescribeShareGroupOffsetsRequest .*\.groups\[0\]\..*",
        "a group without a name, or a topic without partitions, has nothing to tell; Apache Kafka fails over it",
        where_so=lambda ours, theirs: theirs in ([], -1) or (ours is None and isinstance(theirs, str)),
    ),
)
NO_PARTITION_OF_A_SHARE_GROUP = (
    Allowed(
        r"AlterShareGroupOffsetsRequest .*",
        "a partition below 0 is not there, like others that are not; Apache Kafka fails over it for the whole request",
        where_so=lambda ours, theirs: theirs in ([], -1) or (ours is None and isinstance(theirs, str)),
    ),
)
SHARE_GROUP_WITHOUT_NAME = (
    Allowed(
        r"ShareFetchRequest .*",
        "a group without a name is refused at once; Apache Kafka opens a session, and then fails over it",
        where_so=lambda ours, theirs: ours in (42, 0, []),
    ),
)
ONE_TRANSACTION_TWICE = (
    Allowed(
        r"AddPartitionsToTxnRequest v[45] .*",
        "a transactional id that is named twice has both lists of partitions added, and each answered; Apache Kafka "
        "adds those of the last, and answers those of the first",
    ),
)
NO_FETCH = "Kafka fails over sizes below 0, isolation levels that there are not, session ids at the ends of an int32"
NO_ISOLATION = "Kafka fails over an isolation level that there is not; here all but read_committed is uncommitted"
NO_ACLS = "Kafka cannot read an ACL of types that there are not; without an authorizer it is refused like any other"
NO_CURSOR = "Kafka counts on from the cursor beyond what an int32 holds"
AT_EXTREMES: Mapping[str, tuple[Allowed, ...]] = {
    "fetch": (Allowed(r"FetchRequest .*", NO_FETCH),),
    "list_offsets": (Allowed(r"ListOffsetsRequest .*", NO_ISOLATION, theirs=-1),),
    "create_topics": CREATED["more replicas than brokers"],
    "describe_topic_partitions": (Allowed(r"DescribeTopicPartitionsRequest .*\.next_cursor", NO_CURSOR, ours=None),),
    "update_features": (),
    "produce": (Allowed(r"ProduceRequest .*", "a partition that is named twice; Kafka loses all but the last"),),
    "describe_acls": (Allowed(r"DescribeAclsRequest .*", NO_ACLS, theirs="the connection is closed"),),
    "create_acls": (Allowed(r"CreateAclsRequest .*", NO_ACLS, theirs="the connection is closed"),),
    "delete_acls": (Allowed(r"DeleteAclsRequest .*", NO_ACLS, theirs="the connection is closed"),),
}
"""Differences by the name of an API in test_extremes.py."""

TWICE = (Allowed(ANYWHERE, "Kafka loses all but the last of a partition's batches, and says nothing"),)

OPTIONS_OF_ITS_OWN: Mapping[str, str] = {
    "advertised.listeners": "a port that the broker found free is told by Metadata",
    "broker.id": "Kafka fills it in from node.id",
    "controller.listener.names": "there is no separate controller",
    "controller.quorum.voters": "there is no separate controller",
    "listener.security.protocol.map": "listeners are not added while the broker runs",
    "listeners": "the test's own addresses",
    "log.dir": "another default",
    "log.dirs": "the test's own directories",
    "node.id": "it has a default",
    "process.roles": "there is no separate controller",
    "queued.max.request.bytes": "a default that protects; Kafka has none",
}
"""Options of the broker that are not compared, with the reason."""
