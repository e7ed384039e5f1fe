"""Creates a test's topics, users and access control lists through the requests of an admin client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

from broker.dispatch.broker import Broker
from broker.replica.topics import DEFAULT_COUNT, OwnTopic
from coordinator.cluster.scram import MECHANISMS
from programs.control.fields import Fields, suggestion
from programs.control.http import RequestError
from programs.control.json_values import uuid_text
from protocol.acl import CLUSTER_NAME, Operation, PatternType, Permission, Resource
from protocol.errors import ErrorCode, error_code
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from protocol.sasl.scram_client import salted_password
from protocol.types import NO_UUID

E = TypeVar("E", bound=IntEnum)

TIMEOUT_MS: Final = 30_000
SALT_BYTES: Final = 16
ITERATIONS: Final = 4096
"""Apache Kafka's minimum: a test's password is not a secret."""
ALL_OPERATIONS: Final = 2
"""AclOperation.ALL."""


def raise_if(code: int, message: str | None, what: str) -> None:
    """Raises RequestError if the controller answered an error."""
    if code:
        status = 404 if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else 409
        raise RequestError(status, f"{what}: {error_code(code).name}{f', {message}' if message else ''}")


async def create_topic(broker: Broker, fields: Fields) -> dict[str, object]:
    """Creates a topic, and waits until it can be written to. Raises RequestError."""
    name = fields.needed_text("topic")
    partitions = fields.number("partitions", at_least=1) or DEFAULT_COUNT
    replication_factor = fields.number("replication_factor", at_least=1) or DEFAULT_COUNT
    topic = OwnTopic(name, partitions, replication_factor, texts_in(fields, "configs"))
    fields.end()
    (made,) = (await broker.topics.create_own([topic.requested()])).topics
    raise_if(made.error_code, made.error_message, f"topic {name}")
    return {"topic": name, "topic_id": uuid_text(made.topic_id), "partitions": made.num_partitions}


def texts_in(fields: Fields, name: str) -> Mapping[str, str]:
    """Returns an object with text values; numbers and flags are converted to text."""
    (values,) = fields.items(name)[:1] or [{}]
    if not isinstance(values, dict):
        raise fields.wrong(name, values, 'an object, such as {"retention.ms": "1000"}')
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


async def delete_topic(broker: Broker, name: str) -> dict[str, object]:
    """Deletes a topic. Raises RequestError."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=NO_UUID)], timeout_ms=TIMEOUT_MS)
    (deleted,) = (await broker.controller.submit(request, DeleteTopicsResponse)).responses
    raise_if(deleted.error_code, deleted.error_message, f"topic {name}")
    return {"topic": name}


async def add_user(broker: Broker, fields: Fields, random_bytes: Callable[[int], bytes]) -> dict[str, object]:
    """Sets a user's SCRAM password. Raises RequestError."""
    user, password = fields.needed_text("user"), fields.needed_text("password")
    name = fields.choice("mechanism", MECHANISMS) or next(iter(MECHANISMS))
    fields.end()
    mechanism, salt = MECHANISMS[name], random_bytes(SALT_BYTES)
    upsertion = ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism.code,
        iterations=ITERATIONS,
        salt=salt,
        salted_password=salted_password(mechanism.digest, password, salt, ITERATIONS),
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
    (altered,) = (await broker.controller.submit(request, AlterUserScramCredentialsResponse)).results
    raise_if(altered.error_code, altered.error_message, f"user {user}")
    return {"user": user, "mechanism": name}


def member_of(enumeration: type[E], text: str | None, name: str) -> E:
    """Returns a member of an enumeration by its name, in any case. Raises RequestError."""
    named = (text or "").upper().replace("-", "_")
    if named not in enumeration.__members__:
        raise RequestError(400, f"{name} {text!r} is unknown{suggestion(named, enumeration.__members__)}")
    return enumeration[named]


def operation_named(text: str) -> int:
    """Returns the code of an operation, or of ALL of them. Raises RequestError."""
    return ALL_OPERATIONS if text.upper() == "ALL" else member_of(Operation, text, "operation")


async def add_acl(broker: Broker, fields: Fields) -> dict[str, object]:
    """Adds an access control entry. Raises RequestError."""
    resource = member_of(Resource, fields.text("resource_type"), "resource_type")
    operation = operation_named(fields.text("operation") or "ALL")
    name = fields.text("name") or (CLUSTER_NAME if resource is Resource.CLUSTER else "*")
    creation = AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=member_of(PatternType, fields.text("pattern_type") or "LITERAL", "pattern_type"),
        principal=fields.needed_text("principal"),
        host=fields.text("host") or "*",
        operation=operation,
        permission_type=member_of(Permission, fields.text("permission") or "ALLOW", "permission"),
    )
    fields.end()
    request = CreateAclsRequest(creations=[creation])
    (created,) = (await broker.controller.submit(request, CreateAclsResponse)).results
    raise_if(created.error_code, created.error_message, f"acl of {creation.principal}")
    return {"principal": creation.principal, "resource_type": resource.name, "name": name}
