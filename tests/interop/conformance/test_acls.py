"""Compares access control entries without an authorizer with Apache Kafka."""

from __future__ import annotations

from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest
from tests.interop.conformance.compare import Both
from tests.interop.conformance.peers import Peer

TOPIC, READ, ALLOW = 2, 3, 3


def test_entries_are_not_described(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        requested = DescribeAclsRequest(
            resource_type_filter=TOPIC, resource_name_filter="t", principal_filter=None, host_filter=None,
            operation=READ, permission_type=ALLOW,
        )  # fmt: skip
        peer.try_ask(requested, version)

    both.each_version(DescribeAclsRequest, script)


def test_entries_are_not_created(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        entry = AclCreation(
            resource_type=TOPIC, resource_name="t", principal="User:u", host="*", operation=READ, permission_type=ALLOW
        )
        for count in (0, 1, 2):
            peer.try_ask(CreateAclsRequest(creations=[entry] * count), version)

    both.each_version(CreateAclsRequest, script)


def test_entries_are_not_deleted(both: Both) -> None:
    def script(peer: Peer, version: int) -> None:
        requested = DeleteAclsFilter(
            resource_type_filter=TOPIC, resource_name_filter="t", principal_filter=None, host_filter=None,
            operation=READ, permission_type=ALLOW,
        )  # fmt: skip
        for count in (0, 1, 2):
            peer.try_ask(DeleteAclsRequest(filters=[requested] * count), version)

    both.each_version(DeleteAclsRequest, script)
