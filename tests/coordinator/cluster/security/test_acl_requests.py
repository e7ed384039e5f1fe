"""Tests CreateAcls, DeleteAcls and DescribeAcls."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from coordinator.cluster.image import Image
from coordinator.cluster.security.acl_requests import DescribedAcls, create_acls, delete_acls
from protocol.acl import ANY, Operation, PatternType, Permission, Resource
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from protocol.metadata_records.settings import FeatureLevelRecord
from tests.coordinator.cluster import given
from tests.counted_work import lines_run

NEWEST = 3
ANY_FILTER: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
NUMBERS = count(1)


def creation(**fields: Any) -> AclCreation:
    alice_reads: dict[str, Any] = {
        "resource_type": Resource.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**{**alice_reads, **fields})


ORDERS = creation()
PREFIXED = creation(resource_pattern_type=PatternType.PREFIXED)
WRITES = creation(operation=Operation.WRITE)


def create(image: Image, *creations: AclCreation) -> list[tuple[int, str | None]]:
    decided = given.decide(
        create_acls, image, CreateAclsRequest(creations=list(creations)), lambda: next(NUMBERS).to_bytes(16)
    )
    given.apply(image, decided.records)
    return [(result.error_code, result.error_message) for result in decided.answer.results]


def delete(image: Image, *filters: dict[str, Any], version: int = NEWEST) -> list[tuple[int, str | None, int]]:
    """Returns the error of each filter, and the number of matching entries."""
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**{**ANY_FILTER, **wanted}) for wanted in filters])
    decided = given.decide(delete_acls, image, request, version)
    given.apply(image, decided.records)
    return [(one.error_code, one.error_message, len(one.matching_acls)) for one in decided.answer.filter_results]


def describe(image: Image, version: int = NEWEST, **wanted: Any) -> list[tuple[str, int, list[int]]]:
    """Returns the matching patterns, with the operations of their entries."""
    described = DescribedAcls(DescribeAclsRequest(**{**ANY_FILTER, **wanted}), version)
    matches = sum(map(described.add, image.acls))
    resources = described.response.resources
    assert matches == sum(len(resource.acls) for resource in resources)
    return [
        (resource.resource_name, resource.pattern_type, [entry.operation for entry in resource.acls])
        for resource in resources
    ]


def test_entries_are_described_by_pattern() -> None:
    image = given.image()
    assert create(image, ORDERS, WRITES, PREFIXED) == [(0, "")] * 3
    literal = ("orders", PatternType.LITERAL, [Operation.READ, Operation.WRITE])
    prefixed = ("orders", PatternType.PREFIXED, [Operation.READ])
    assert describe(image) == [literal, prefixed]
    assert describe(image, version=0) == [literal]
    assert describe(image, pattern_type_filter=PatternType.PREFIXED) == [prefixed]
    assert describe(image, principal_filter="User:bob") == []


def test_an_entry_that_exists_is_created_once() -> None:
    image = given.image()
    assert create(image, ORDERS, ORDERS) == [(0, "")] * 2
    assert create(image, ORDERS) == [(0, "")]
    assert len(list(image.acls)) == 1


@pytest.mark.parametrize(("fields", "message"), [
    ({"resource_type": Resource.CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
    ({"resource_name": ""}, "Invalid empty resource name"),
    ({"resource_type": ANY}, "Invalid resourceType ANY"),
    ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
    ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
    ({"operation": ANY}, "Invalid operation ANY"),
    ({"permission_type": ANY}, "Invalid permissionType ANY"),
    ({"principal": "alice"},
     "Could not parse principal from `alice` "
     "(no colon is present separating the principal type from the principal name)"),
])  # fmt: skip
def test_an_invalid_entry_is_rejected_alone(fields: dict[str, Any], message: str) -> None:
    image = given.image()
    assert create(image, creation(**fields), WRITES) == [(ErrorCode.INVALID_REQUEST, message), (0, "")]
    assert describe(image) == [("orders", PatternType.LITERAL, [Operation.WRITE])]


def test_each_filter_has_all_entries_that_it_matches() -> None:
    image = given.image()
    create(image, ORDERS, WRITES, PREFIXED)
    reads = {"operation": Operation.READ}
    assert delete(image, {"host_filter": "10.0.0.1"}, reads, {"resource_name_filter": "orders"}) == [
        (0, None, 0), (0, None, 2), (0, None, 3),
    ]  # fmt: skip
    assert describe(image) == []


def test_before_version_1_only_literal_patterns_are_deleted() -> None:
    image = given.image()
    create(image, ORDERS, PREFIXED)
    assert delete(image, {}, version=0) == [(0, None, 1)]
    assert describe(image) == [("orders", PatternType.PREFIXED, [Operation.READ])]


def test_a_filter_with_an_unknown_part_is_rejected() -> None:
    image = given.image()
    create(image, ORDERS)
    unknown = {"operation": 99}
    assert delete(image, unknown, {}) == [(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.", 0), (0, None, 1)]
    with pytest.raises(KafkaError, match=r"Unknown entryFilter\."):
        describe(image, **unknown)


@pytest.mark.parametrize(("host", "why"), [
    ("", "Host pattern cannot be null or empty"),
    ("10.0.0.0/33", "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
    ("256.0.0.0/8", "Invalid CIDR notation '256.0.0.0/8': Value [256] not in range [0,255]"),
    ("10.0.0.0/", "Invalid CIDR notation '10.0.0.0/': Could not parse [10.0.0.0/]"),
    ("kafka.example/8", "Invalid CIDR notation 'kafka.example/8': Could not parse [kafka.example/8]"),
    ("2001:db8::/129", "Could not parse [2001:db8::/129] - prefix length must be between 0 and 128"),
    ("2001:db8::/-1", "Could not parse [2001:db8::/-1] - prefix length must be between 0 and 128"),
    ("2001:db8::/x", "Could not parse [2001:db8::/x] - invalid prefix length"),
    ("2001:db8::/9" + 5_000 * "9", "Could not parse [2001:db8::/9999"),
    ("2001:db8::1::/64", "Could not parse [2001:db8::1::]"),
    ("::ffff:10.0.0.0/104", "Could not parse [::ffff:10.0.0.0] - not an IPv6 address"),
])  # fmt: skip
def test_a_new_entry_has_a_host_or_a_network(host: str, why: str) -> None:
    image = given.image()
    ((code, message),) = create(image, creation(host=host))
    assert (code, why in (message or "")) == (ErrorCode.INVALID_REQUEST, True)
    assert not list(image.acls)


def test_networks_need_metadata_version_4_4() -> None:
    older = given.image(FeatureLevelRecord(name="metadata.version", feature_level=31))
    network, address = creation(host="10.0.0.0/8"), creation(host="10.0.0.1")
    message = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert create(older, network, address) == [(ErrorCode.UNSUPPORTED_VERSION, message), (0, "")]
    assert create(given.image(), network, creation(host="2001:db8::/32")) == [(0, ""), (0, "")]


def test_a_filter_compares_networks_as_text() -> None:
    image = given.image()
    create(image, creation(host="10.0.0.0/8"), creation(host="10.0.0.1"))
    assert delete(image, {"host_filter": "10.0.0.1"}, {"host_filter": "10.0.0.0/9"}) == [(0, None, 1), (0, None, 0)]
    assert delete(image, {"host_filter": "10.0.0.0/8"}) == [(0, None, 1)]


@pytest.mark.parametrize("named", [
    lambda number: {"resource_name_filter": f"topic-{number}"},
    lambda number: {"principal_filter": f"User:user-{number}"},
], ids=["by name", "by principal"])  # fmt: skip
def test_twice_the_filters_and_entries_are_twice_the_work(named: Callable[[int], dict[str, str]]) -> None:
    lines = []
    for size in (50, 100):
        image = given.image()
        create(image, *(
            creation(resource_name=f"topic-{number}", principal=f"User:user-{number}") for number in range(size)
        ))  # fmt: skip
        filters = [named(number) for number in range(size)]
        lines.append(lines_run(lambda filters=filters, image=image: delete(image, *filters)))  # type: ignore[misc]
        assert not list(image.acls)
    assert lines[1] < 2.5 * lines[0]


def test_filters_have_a_limit_of_comparisons() -> None:
    image = given.image()
    create(image, *(creation(resource_name=f"topic-{number}") for number in range(1_000)))
    few = [{"host_filter": "10.0.0.1"}] * 1_000
    with pytest.raises(KafkaError) as error:
        delete(image, *few, {})
    assert error.value.code is ErrorCode.POLICY_VIOLATION
    assert len(list(image.acls)) == 1_000
    assert delete(image, {}) == [(0, None, 1_000)]
