"""Access control, credentials and delegation tokens in the metadata log."""

from __future__ import annotations

from protocol.schema import versioned, wire
from protocol.types import int8, int32, int64, uuid


@versioned(18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """An access control entry. Codes are as in CreateAcls."""

    id: uuid = wire()
    resource_type: int8 = wire()
    resource_name: str = wire()
    pattern_type: int8 = wire()
    principal: str = wire()
    host: str = wire()
    operation: int8 = wire()
    permission_type: int8 = wire()


@versioned(19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """The removal of an access control entry."""

    id: uuid = wire()


@versioned(11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    """A user's SCRAM credential: mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""

    name: str = wire()
    mechanism: int8 = wire()
    salt: bytes = wire()
    stored_key: bytes = wire()
    server_key: bytes = wire()
    iterations: int32 = wire()


@versioned(22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    """The removal of a user's SCRAM credential."""

    name: str = wire()
    mechanism: int8 = wire()


@versioned(10, versions="0", flexible="0+")
class DelegationTokenRecord:
    """A new or renewed delegation token. Principals as `User:name`, dates in milliseconds since 1970."""

    owner: str = wire()
    requester: str = wire()
    renewers: list[str] = wire()
    issue_timestamp: int64 = wire()
    max_timestamp: int64 = wire()
    expiration_timestamp: int64 = wire()
    token_id: str = wire()


@versioned(26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    """The removal of a delegation token."""

    token_id: str = wire()
