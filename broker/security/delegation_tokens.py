"""The credentials of delegation tokens for SCRAM: a token's id is its name, its key in base64 its password (KIP-48).

Source: kafka.server.DelegationTokenManager.prepareScramCredentials, ScramServerCallbackHandler.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache

from coordinator.cluster.image import Image
from coordinator.cluster.security.delegation_tokens import has_expired, kind_and_name, token_key
from protocol.metadata_records.security import DelegationTokenRecord
from protocol.sasl.scram import DIGESTS, MIN_ITERATIONS, Credential, TokenCredential

SALT_BYTES = 16


def token_credential(
    image: Image, secret_key: str, mechanism: str, now_ms: Callable[[], int], token_id: str
) -> TokenCredential | None:
    """Returns the credential of a token that is there and has not expired; `secret_key` is the cluster's."""
    token = image.other_records.get(("delegation token", token_id))
    if not isinstance(token, DelegationTokenRecord) or has_expired(token, now_ms()):
        return None
    keys = token_keys(secret_key, mechanism, token_id)
    return TokenCredential(keys, kind_and_name(token.owner)[1], token.expiration_timestamp)


@lru_cache(maxsize=4_096)
def token_keys(secret_key: str, mechanism: str, token_id: str) -> Credential:
    """Returns the keys of a token: milliseconds of work, which who shows it again need not cost. The salt is the
    cluster's for it, so that each broker challenges alike."""
    digest, key = DIGESTS[mechanism], token_key(secret_key, token_id)
    salt = hmac.digest(key, b"salt", digest)[:SALT_BYTES]
    salted = hashlib.pbkdf2_hmac(digest, base64.b64encode(key), salt, MIN_ITERATIONS)
    stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    return Credential(salt, stored_key, hmac.digest(salted, b"Server Key", digest), MIN_ITERATIONS)
