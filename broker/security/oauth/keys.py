"""The public keys of an issuer (RFC 7517), and the verification of signatures with them (RFC 7515).

Only public-key algorithms are accepted: an unsigned token is invalid, and with an HMAC the public key would be the
secret, with which anyone could sign. A key verifies the algorithms of its type; if it names an algorithm, only that.

Source: org.jose4j.jwk.VerificationJwkSelector, which Apache Kafka's brokers use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from jwt import PyJWS, PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from protocol.sasl.oauthbearer import TokenRefused

if TYPE_CHECKING:
    from jwt.algorithms import AllowedPublicKeys

MAX_KEYS_BYTES: Final = 1 << 20
"""Maximum size of a key set, more than any issuer's; a larger answer or file is not read."""

MIN_RSA_BITS: Final = 2048
"""Shorter keys can be broken at some cost (RFC 7518, 3.3)."""

RSA, EC, OKP = "RSA", "EC", "OKP"

ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    "RS256": (RSA, None),
    "RS384": (RSA, None),
    "RS512": (RSA, None),
    "PS256": (RSA, None),
    "PS384": (RSA, None),
    "PS512": (RSA, None),
    "ES256": (EC, "P-256"),
    "ES384": (EC, "P-384"),
    "ES512": (EC, "P-521"),
    "EdDSA": (OKP, "Ed25519"),
}
"""The algorithms of a token's signature, each with the type of its keys, and their curve."""

READERS: Final[Mapping[str, Callable[[dict[str, object]], object]]] = {
    RSA: RSAAlgorithm.from_jwk,
    EC: ECAlgorithm.from_jwk,
    OKP: OKPAlgorithm.from_jwk,
}

SIGNATURES: Final = PyJWS(algorithms=list(ALGORITHMS))


class UnreadableKeys(ValueError):
    """The issuer's answer is not a set of keys."""


class IssuerKey(NamedTuple):
    """A public key of the issuer."""

    kid: str | None
    algorithm: str | None
    """The key's only algorithm; None if it names none."""
    kind: tuple[str, str | None]
    public: object

    def serves(self, algorithm: str) -> bool:
        kind, curve = ALGORITHMS[algorithm]
        return self.kind == (kind, curve if curve else self.kind[1]) and self.algorithm in (None, algorithm)


class Signed(NamedTuple):
    """The header of a token, which selects its key."""

    algorithm: str
    kid: str | None


class UnknownKey(TokenRefused):
    """The issuer has no key for the token."""

    def __init__(self, kid: str | None) -> None:
        super().__init__(f"the issuer has no key {kid!r} for it" if kid else "the issuer has no key for it")
        self.kid = kid


class KeySet:
    """The keys of an issuer at one time."""

    def __init__(self, keys: tuple[IssuerKey, ...]) -> None:
        self.keys = keys

    @property
    def kids(self) -> frozenset[str]:
        """The key ids of the keys that have one."""
        return frozenset(key.kid for key in self.keys if key.kid is not None)

    def find(self, signed: Signed) -> IssuerKey:
        """Returns the key of a token. Raises UnknownKey."""
        for key in self.keys:
            if key.serves(signed.algorithm) and signed.kid in (None, key.kid):
                return key
        raise UnknownKey(signed.kid)


def key_set(data: bytes) -> KeySet:
    """Returns the keys in a JWKS that can verify signatures. Raises UnreadableKeys."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableKeys("it is not JSON") from error
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise UnreadableKeys('it has no list of "keys"')
    usable = tuple(key for jwk in keys if isinstance(jwk, dict) and (key := _key(jwk)) is not None)
    if not usable:
        raise UnreadableKeys(f"none of its {len(keys)} keys can verify {', '.join(ALGORITHMS)}")
    return KeySet(usable)


def _key(jwk: dict[str, object]) -> IssuerKey | None:
    """Returns a public key. Returns None if the key has another use, is a private or secret key, or is too short."""
    kid, algorithm, kind = jwk.get("kid"), jwk.get("alg"), jwk.get("kty")
    operations = jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return None
    if not isinstance(kind, str) or kind not in READERS or not isinstance(kid, str | None) or "d" in jwk:
        return None
    if algorithm is not None and (not isinstance(algorithm, str) or algorithm not in ALGORITHMS):
        return None
    try:
        public = READERS[kind](jwk)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if getattr(public, "key_size", MIN_RSA_BITS) < MIN_RSA_BITS and kind == RSA:
        return None
    curve = jwk.get("crv")
    return IssuerKey(kid, algorithm, (kind, str(curve) if curve else None), public)


def header_of(token: str) -> Signed:
    """Returns the header of a token, whose signature is not verified yet. Raises TokenRefused."""
    try:
        header = SIGNATURES.get_unverified_header(token)
    except (PyJWTError, ValueError, RecursionError) as error:
        raise TokenRefused("it is not a signed JWT") from error
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"its algorithm {str(algorithm)[:20]!r} is not one of {', '.join(ALGORITHMS)}")
    if "crit" in header or "b64" in header:
        raise TokenRefused("its header has critical extensions")
    return Signed(algorithm, kid)


def claims_of(token: str, signed: Signed, key: IssuerKey) -> dict[str, object]:
    """Returns the claims of a token after verifying its signature with the key. Raises TokenRefused."""
    try:
        payload = SIGNATURES.decode(token, cast("AllowedPublicKeys", key.public), algorithms=[signed.algorithm])
        claims = json.loads(payload)
    except (PyJWTError, ValueError, TypeError, RecursionError) as error:
        raise TokenRefused("its signature is wrong, or it has no claims") from error
    if not isinstance(claims, dict):
        raise TokenRefused("it has no claims")
    return claims
