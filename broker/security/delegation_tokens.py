"""The credentials of delegation tokens for SCRAM: a token's id is its name, its key in base64 its password (KIP-48).

Source: kafka.server.DelegationTokenManager.prepareScramCredentials, ScramServerCallbackHandler.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from coordinator.cluster.image import Image
from coordinator.cluster.security.delegation_tokens import has_expired, kind_and_name
from coordinator.cluster.security.token_keys import token_key
from protocol.sasl.scram import DIGESTS, MIN_ITERATIONS, Credential, TokenCredential, TokenLookup

SALT_BYTES: Final = 16

CACHED_TOKENS: Final = 4_096
"""Tokens whose keys a listener remembers for each mechanism, so that they are computed once."""


def token_lookup(image: Image, secret_key: str, mechanism: str, now_ms: Callable[[], int]) -> TokenLookup:
    """Returns a function that returns the credential of an existing, unexpired token; `secret_key` is the cluster's."""
    keys_of = lru_cache(maxsize=CACHED_TOKENS)(partial(token_keys, secret_key, mechanism))

    def find(token_id: str) -> TokenCredential | None:
        token = image.delegation_tokens.find(token_id)
        if token is None or has_expired(token, now_ms()):
            return None
        return TokenCredential(keys_of(token_id), kind_and_name(token.owner)[1], token.expiration_timestamp)

    return find


def token_keys(secret_key: str, mechanism: str, token_id: str) -> Credential:
    """Returns the keys of a token, whose computation takes milliseconds. The salt is derived from the token's key, so
    that each broker sends the same challenge."""
    digest, key = DIGESTS[mechanism], token_key(secret_key, token_id)
    salt = hmac.digest(key, b"salt", digest)[:SALT_BYTES]
    salted = hashlib.pbkdf2_hmac(digest, base64.b64encode(key), salt, MIN_ITERATIONS)
    stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    return Credential(salt, stored_key, hmac.digest(salted, b"Server Key", digest), MIN_ITERATIONS)
