"""The keys of delegation tokens (their HMACs): no record has them, each node makes them of a token's id and the secret.

Source: org.apache.kafka.security.DelegationTokenManager.createHmac, DelegationTokenCache.tokenForHmac.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

DIGEST: Final = "sha512"


@lru_cache(maxsize=16_384)
def token_key(secret_key: str, token_id: str) -> bytes:
    """Returns the key of a token (its HMAC), which is its password in base64."""
    return hmac.digest(secret_key.encode(), token_id.encode(), DIGEST)


class TokenKeys:
    """Ids of tokens by their keys. A look-up in a dict tells nothing of a key by its time: Python hashes bytes with a
    secret of the process."""

    def __init__(self, secret_key: str, token_ids: Iterable[str]) -> None:
        self.secret_key = secret_key
        self._ids = {token_key(secret_key, token_id): token_id for token_id in token_ids}

    def find(self, key: bytes) -> str | None:
        """Returns the id of the token that has a key."""
        return self._ids.get(key)

    def add(self, token_id: str) -> None:
        self._ids[token_key(self.secret_key, token_id)] = token_id

    def remove(self, token_id: str) -> None:
        self._ids.pop(token_key(self.secret_key, token_id), None)
