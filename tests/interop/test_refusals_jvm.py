"""Compares the response that rejects a whole request with Kafka's `getErrorResponse`, for every API and version."""

from __future__ import annotations

from typing import Any, NamedTuple

from broker.dispatch.api import Api
from broker.dispatch.rejection import rejection
from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from protocol.api_key import ApiKey
from protocol.codec import decode, encode
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import fields_of
from tests.broker.extremes import plausible
from tests.interop import jvm
from tests.interop.processes import run
from tests.interop.test_messages_jvm import ONLY_IN_3_9, kafka_3_9, kafka_4_4

CODE = ErrorCode.POLICY_VIOLATION
TOPIC_ID = bytes(range(16))


class Case(NamedTuple):
    """A request in one version."""

    api: Api
    version: int
    request: Any


def cases(*, of_3_9: bool) -> list[Case]:
    """Returns a request of each API in each version that this Kafka has."""
    rows = {api.key: api for apis in (CONTROLLER_APIS, APIS) for api in apis}
    return [
        Case(api, version, plausible(api.request, version, TOPIC_ID))
        for api in rows.values()
        for version in range(api.versions.first, api.versions.last + 1)
        if (version in ONLY_IN_3_9.get(api.key, ())) is of_3_9 and api.key is not ApiKey.DESCRIBE_SHARE_GROUP_RECORDS
    ]


def comparable(message: Any) -> Any:
    """Returns a response without its texts, and with sorted partitions: Kafka repeats the default message of a code in
    some responses, and orders the partitions of Produce by their hashes. Missing records are null in Kafka 3.9 and
    empty in 4."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name == "error_message":
            setattr(message, field.name, None)
        elif field.kind.items is not None and field.kind.items.struct is not None:
            for item in value or ():
                comparable(item)
            if field.name == "partition_responses":
                value.sort(key=lambda partition: partition.index)
        elif field.kind.name == "records":
            setattr(message, field.name, value or b"")
    return message


def compare(classpath: str, compared: list[Case]) -> None:
    lines = "".join(
        f"{int(case.api.key)} {case.version} {int(CODE)} {encode(case.request, case.version).hex()}\n"
        for case in compared
    )
    answered = run(jvm.java(classpath, str(jvm.HERE / "Refusal.java")), stdin=lines.encode()).stdout.decode()
    different = []
    for case, answer in zip(compared, answered.splitlines(), strict=True):
        own = rejection(case.api, case.request, case.version, KafkaError(CODE))
        mine = comparable(decode(case.api.response, case.version, encode(own, case.version))[0])
        theirs = answer
        if not answer.startswith("! "):
            theirs = comparable(decode(case.api.response, case.version, bytes.fromhex(answer))[0])
        if mine != theirs:
            different.append(f"{case.api.key.name} v{case.version}\n  ours   {mine}\n  Kafka's {theirs}")
    assert not different, "\n".join(different)


def test_every_version_that_kafka_4_4_serves_is_refused_as_kafka_does() -> None:
    compare(kafka_4_4(), cases(of_3_9=False))


def test_every_version_that_kafka_4_0_removed_is_refused_as_kafka_3_9_does() -> None:
    compare(kafka_3_9(), cases(of_3_9=True))
