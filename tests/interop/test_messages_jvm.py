"""Compares every message and record with Kafka's own generated classes: they read our bytes and write the same bytes.

Versions that Kafka 4.0 removed are compared with the classes of 3.9.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest

import protocol.coordinator_records as coordinator_records
import protocol.metadata_records as metadata_records
from bench.jars import apache_kafka
from protocol.api_key import OWN, ApiKey
from protocol.codec import encode
from protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from protocol.messages import messages_of
from protocol.messages.header import RequestHeader, ResponseHeader
from protocol.messages.principal import DefaultPrincipalData
from protocol.records import control
from protocol.schema import Kind, fields_of
from tests.interop import jvm
from tests.interop.processes import run
from tests.protocol.messages.samples import samples, versions_of

LAST_WITH_OLD_VERSIONS = "3.9.2"

ONLY_IN_3_9 = {
    ApiKey.PRODUCE: range(3),
    ApiKey.FETCH: range(4),
    ApiKey.LIST_OFFSETS: range(1),
    ApiKey.LEADER_AND_ISR: range(8),
    ApiKey.STOP_REPLICA: range(5),
    ApiKey.UPDATE_METADATA: range(9),
    ApiKey.CONTROLLED_SHUTDOWN: range(4),
    ApiKey.OFFSET_COMMIT: range(2),
    ApiKey.OFFSET_FETCH: range(1),
    ApiKey.CREATE_TOPICS: range(2),
    ApiKey.DELETE_TOPICS: range(1),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2),
    ApiKey.WRITE_TXN_MARKERS: range(1),
    ApiKey.DESCRIBE_ACLS: range(1),
    ApiKey.CREATE_ACLS: range(1),
    ApiKey.DELETE_ACLS: range(1),
    ApiKey.DESCRIBE_CONFIGS: range(1),
    ApiKey.ALTER_REPLICA_LOG_DIRS: range(1),
    ApiKey.DESCRIBE_LOG_DIRS: range(1),
    ApiKey.CREATE_DELEGATION_TOKEN: range(1),
    ApiKey.RENEW_DELEGATION_TOKEN: range(1),
    ApiKey.EXPIRE_DELEGATION_TOKEN: range(1),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: range(1),
}
"""The versions that Kafka 4.0 removed (KIP-896)."""


class Case(NamedTuple):
    """A message, its version, and the Java class that reads it."""

    java: str
    value: Any
    version: int


def cases(java: str, cls: type, versions: Iterable[int]) -> list[Case]:
    return [Case(java, value, version) for version in versions for value in samples(cls, version)]


def api_cases(api: ApiKey, versions: Iterable[int]) -> list[Case]:
    package, chosen = "org.apache.kafka.common.message", list(versions)
    return [case for cls in messages_of(api)[1:] for case in cases(f"{package}.{cls.__name__}Data", cls, chosen)]


def in_4_4(api: ApiKey) -> Iterable[int]:
    return (version for version in versions_of(messages_of(api).request) if version not in ONLY_IN_3_9.get(api, ()))


def other_cases() -> list[Case]:
    """Returns cases for headers, the consumer protocol, principals and control records."""
    package = "org.apache.kafka.common.message"
    headers = [
        *cases(f"{package}.RequestHeaderData", RequestHeader, range(1, 3)),
        *cases(f"{package}.ResponseHeaderData", ResponseHeader, range(2)),
        *cases(f"{package}.DefaultPrincipalData", DefaultPrincipalData, range(1)),
    ]
    plain = [ConsumerProtocolSubscription, ConsumerProtocolAssignment]
    plain += [control.LeaderChangeMessage, control.SnapshotHeaderRecord, control.SnapshotFooterRecord]
    plain += [control.KRaftVersionRecord, control.VotersRecord]
    return headers + [case for cls in plain for case in cases(f"{package}.{cls.__name__}", cls, versions_of(cls))]


def metadata_cases() -> list[Case]:
    classes = [metadata_records.record_class(record_type) for record_type in metadata_records.RECORDS]
    package = "org.apache.kafka.common.metadata"
    return [case for cls in classes for case in cases(f"{package}.{cls.__name__}", cls, versions_of(cls))]


COORDINATORS = {
    "group": coordinator_records.CONSUMER_OFFSETS,
    "transaction": coordinator_records.TRANSACTION_STATE,
    "share": coordinator_records.SHARE_GROUP_STATE,
}


def coordinator_cases(name: str) -> list[Case]:
    package = f"org.apache.kafka.coordinator.{name}.generated"
    classes = [cls for path in COORDINATORS[name].values() for cls in coordinator_records.record_classes(path)]
    return [case for cls in classes for case in cases(f"{package}.{cls.__name__}", cls, versions_of(cls))]


def answers(classpath: str, cases: list[Case]) -> list[str]:
    """Returns the Java classes' answers to all cases."""
    lines = "".join(f"{case.java} {case.version} {encode(case.value, case.version).hex()}\n" for case in cases)
    command = jvm.java(classpath, str(jvm.HERE / "RoundTrip.java"))
    return run(command, stdin=lines.encode()).stdout.decode().splitlines()


def compare(classpath: str, cases: list[Case]) -> None:
    answered = answers(classpath, cases)
    assert len(answered) == len(cases)
    for case, answer in zip(cases, answered, strict=True):
        assert not answer.startswith("! "), answer
        written, _, read = answer.partition("\t")
        assert written == encode(case.value, case.version).hex(), case
        assert json.loads(read) == as_json(case.value, case.version, tags=json.loads(read)), case


def as_json(value: Any, version: int, *, tags: dict[str, Any]) -> dict[str, Any]:
    """Returns our message in the form of Kafka's JSON converters, which leave out a tagged field at its default."""
    fields = {}
    for field in fields_of(type(value)):
        name = camel(field.name)
        field_value = getattr(value, field.name)
        if version not in field.wire.versions or (version in field.wire.tagged and name not in tags):
            continue
        if field.kind.name == "records" and field_value is not None:
            fields[f"{name}SizeInBytes"] = len(field_value)
        else:
            fields[name] = plain(field_value, field.kind, version, tags.get(name))
    return fields


def plain(field_value: Any, kind: Kind, version: int, theirs: Any) -> Any:
    if field_value is None:
        return None
    if kind.struct is not None:
        return as_json(field_value, version, tags=theirs or {})
    if kind.items is not None:
        counterparts = theirs or [None] * len(field_value)
        pairs = zip(field_value, counterparts, strict=True)
        return [plain(item, kind.items, version, counterpart) for item, counterpart in pairs]
    if kind.name == "uuid":
        return base64.urlsafe_b64encode(field_value).rstrip(b"=").decode()
    return base64.b64encode(field_value).decode() if kind.name == "bytes" else field_value


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def kafka_4_4() -> str:
    return f"{apache_kafka()}/*"


def kafka_3_9() -> str:
    return f"{jvm.clients(LAST_WITH_OLD_VERSIONS)}/*:{kafka_4_4()}"


def test_kafka_4_4_reads_and_writes_every_message_it_has_as_we_do() -> None:
    compare(kafka_4_4(), [case for api in ApiKey if api not in OWN for case in api_cases(api, in_4_4(api))])


def test_kafka_3_9_reads_and_writes_the_versions_that_4_0_removed_as_we_do() -> None:
    compare(kafka_3_9(), [case for api, versions in ONLY_IN_3_9.items() for case in api_cases(api, versions)])


def test_kafka_reads_and_writes_headers_and_embedded_messages_as_we_do() -> None:
    compare(kafka_4_4(), other_cases())


def test_kafka_reads_and_writes_metadata_records_as_we_do() -> None:
    compare(kafka_4_4(), metadata_cases())


@pytest.mark.parametrize("coordinator", COORDINATORS)
def test_kafka_reads_and_writes_coordinator_records_as_we_do(coordinator: str) -> None:
    compare(kafka_4_4(), coordinator_cases(coordinator))
