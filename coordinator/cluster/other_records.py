"""Records of other rooms: what each replaces or removes, so that state and snapshots lose none of them.

Security folds ACLs, SCRAM credentials and delegation tokens, quotas fold client quotas; the metadata log is theirs too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from protocol.metadata_records import security, settings

Key = tuple[object, ...]
"""The identity of a record's subject: the last record of each stays."""

OtherRecord: TypeAlias = (
    security.AccessControlEntryRecord
    | security.UserScramCredentialRecord
    | security.DelegationTokenRecord
    | settings.ClientQuotaRecord
)


def _quota(record: settings.ClientQuotaRecord) -> Key:
    entity = ((entry.entity_type, entry.entity_name is None, entry.entity_name or "") for entry in record.entity)
    return ("client quota", record.key, *sorted(entity))


def delegation_token(token_id: str) -> Key:
    """Returns the key of a delegation token."""
    return ("delegation token", token_id)


SET: dict[type, Callable[..., Key]] = {
    security.AccessControlEntryRecord: lambda record: ("acl", record.id),
    security.UserScramCredentialRecord: lambda record: ("scram", record.name, record.mechanism),
    security.DelegationTokenRecord: lambda record: delegation_token(record.token_id),
    settings.ClientQuotaRecord: _quota,
}
REMOVE: dict[type, Callable[..., Key]] = {
    security.RemoveAccessControlEntryRecord: lambda record: ("acl", record.id),
    security.RemoveUserScramCredentialRecord: lambda record: ("scram", record.name, record.mechanism),
    security.RemoveDelegationTokenRecord: lambda record: delegation_token(record.token_id),
}


def fold(records: dict[Key, OtherRecord], record: object) -> Key | None:
    """Take the record into `kept`, or what it removes out; its key, or None if it is no such record."""
    kind = type(record)
    if kind in REMOVE:
        key = REMOVE[kind](record)
        records.pop(key, None)
        return key
    if kind not in SET:
        return None
    key = SET[kind](record)
    if isinstance(record, settings.ClientQuotaRecord) and record.remove:
        records.pop(key, None)
    else:
        records[key] = record  # type: ignore[assignment]  # SET has exactly the kinds of Kept
    return key
