"""The SCRAM credentials of an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from protocol.metadata_records.security import UserScramCredentialRecord


class ScramCredentials:
    """The credentials of users, at most one for each mechanism."""

    def __init__(self, records: Mapping[tuple[str, int], UserScramCredentialRecord] | None = None) -> None:
        self._records = dict(records or {})

    def __iter__(self) -> Iterator[UserScramCredentialRecord]:
        """Yields all credentials in the order in which they were added."""
        return iter(self._records.values())

    def find(self, user: str, mechanism: int) -> UserScramCredentialRecord | None:
        """Returns a user's credential for a mechanism, which is given by its code."""
        return self._records.get((user, mechanism))

    def copy(self) -> ScramCredentials:
        return ScramCredentials(self._records)

    def set(self, record: UserScramCredentialRecord) -> None:
        """Adds or replaces a credential."""
        self._records[record.name, record.mechanism] = record

    def remove(self, user: str, mechanism: int) -> None:
        """Removes a credential, if there is one."""
        self._records.pop((user, mechanism), None)
