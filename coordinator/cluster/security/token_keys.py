"""The keys of delegation tokens (their HMACs). No record has them: each node computes them from the token's id and the
secret.

Source: org.apache.kafka.security.DelegationTokenManager.createHmac, DelegationTokenCache.tokenForHmac.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from protocol.lazy import lazy
from protocol.metadata_records.security import DelegationTokenRecord

if TYPE_CHECKING:
    import hmac
else:  # with the first token: it imports a megabyte
    hmac = lazy("hmac")

DIGEST: Final = "sha512"


@lru_cache(maxsize=16_384)
def token_key(secret_key: str, token_id: str) -> bytes:
    """Returns the key of a token (its HMAC); the base64 of the key is the token's password."""
    return hmac.digest(secret_key.encode(), token_id.encode(), DIGEST)


class DelegationTokens:
    """The delegation tokens of an image, by their ids and their keys."""

    def __init__(self, records: Mapping[str, DelegationTokenRecord] | None = None) -> None:
        self._records = dict(records or {})
        self._secret_key = ""
        self._ids: dict[bytes, str] | None = None
        """The ids by the keys that `_secret_key` makes, computed at the first look-up of a key. The time of a look-up
        reveals nothing about the keys, because Python hashes bytes with a secret of the process."""

    def __iter__(self) -> Iterator[DelegationTokenRecord]:
        """Yields all tokens, expired tokens too, in the order in which they were created."""
        return iter(self._records.values())

    def find(self, token_id: str) -> DelegationTokenRecord | None:
        """Returns the token of an id."""
        return self._records.get(token_id)

    def of_key(self, secret_key: str, key: bytes) -> DelegationTokenRecord | None:
        """Returns the token with a key, which is computed from the token's id and the nodes' secret."""
        if self._ids is None or self._secret_key != secret_key:
            self._secret_key = secret_key
            self._ids = {token_key(secret_key, token_id): token_id for token_id in self._records}
        token_id = self._ids.get(key)
        return None if token_id is None else self._records[token_id]

    def copy(self) -> DelegationTokens:
        """Returns the same tokens, without their keys."""
        return DelegationTokens(self._records)

    def set(self, record: DelegationTokenRecord) -> None:
        """Adds or replaces a token."""
        self._records[record.token_id] = record
        if self._ids is not None:
            self._ids[token_key(self._secret_key, record.token_id)] = record.token_id

    def remove(self, token_id: str) -> None:
        """Removes a token, if there is one."""
        self._records.pop(token_id, None)
        if self._ids is not None:
            self._ids.pop(token_key(self._secret_key, token_id), None)
