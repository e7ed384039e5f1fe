"""Tests tokens with their issuer's keys: valid tokens are accepted, and all others are rejected."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from broker.config.oauth import SignedTokenOptions, UnsecuredTokenOptions
from broker.security.oauth.claims import proven
from broker.security.oauth.keys import UnknownKey, UnreadableKeys, claims_of, header_of, key_set
from broker.security.oauth.unsecured import unsecured
from protocol.sasl.oauthbearer import BearerToken, TokenRefused
from tests.broker.security.issuer import ALLOWED, ec_key, ed_key, jwk, jwks, part, rsa_key, token, unsigned

NOW_S = 1_000_000
NOW_MS = NOW_S * 1000
OPTIONS = SignedTokenOptions("http://localhost/keys", 1, 1, 1, 30, frozenset(), None, "scope", "sub", {})
PLAIN = UnsecuredTokenOptions("sub", "scope", (), 0)
TIMES = {"iat": NOW_S - 10, "exp": NOW_S + 60}


def verified(of: str, *keys: dict[str, object]) -> dict[str, object]:
    """Returns the claims of a token, verified by an issuer's keys."""
    signed = header_of(of)
    return claims_of(of, signed, key_set(jwks(*keys)).find(signed))


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_a_token_of_an_rsa_key_is_read(algorithm: str) -> None:
    assert verified(token(rsa_key(), algorithm=algorithm), jwk(rsa_key(), "one"))["sub"] == "alice"


def test_tokens_of_elliptic_curves_are_read() -> None:
    assert verified(token(ec_key()), jwk(ec_key(), "one"))["sub"] == "alice"
    assert verified(token(ed_key(), algorithm="EdDSA"), jwk(ed_key(), "one"))["sub"] == "alice"


def test_the_key_is_that_which_the_token_names() -> None:
    keys = (jwk(ec_key("other"), "two"), jwk(rsa_key(), "one"), jwk(ec_key(), "one"))
    assert verified(token(ec_key()), *keys)["sub"] == "alice"
    with pytest.raises(UnknownKey, match="no key 'three'"):
        verified(token(ec_key(), kid="three"), *keys)
    with pytest.raises(TokenRefused, match="its signature is wrong"):
        verified(token(ec_key(), kid="two"), *keys)


def test_a_token_that_names_none_is_of_the_first_key_of_its_kind() -> None:
    assert verified(token(ec_key(), kid=None), jwk(rsa_key(), "r"), jwk(ec_key(), "one"))["sub"] == "alice"


def test_a_key_is_for_its_own_algorithm_alone() -> None:
    with pytest.raises(UnknownKey):
        verified(token(rsa_key(), algorithm="RS512"), jwk(rsa_key(), "one", alg="RS256"))
    with pytest.raises(UnknownKey):
        verified(token(ec_key()), jwk(rsa_key(), "one"))


def test_a_public_key_is_no_secret_of_an_hmac() -> None:
    header, body = part({"alg": "HS256", "kid": "one"}), part({"sub": "mallory", **TIMES})
    for secret in (jwks(jwk(rsa_key(), "one")), str(jwk(rsa_key(), "one")["n"]).encode()):
        forged = f"{header}.{body}.{part(hmac.digest(secret, f'{header}.{body}'.encode(), hashlib.sha256))}"
        with pytest.raises(TokenRefused, match="its algorithm 'HS256'"):
            verified(forged, jwk(rsa_key(), "one"))


@pytest.mark.parametrize("header", [
    {"alg": "none"}, {"alg": "None"}, {"alg": ""}, {"alg": None}, {"alg": 1}, {"alg": ["ES256"]}, {}, [], "ES256", 1,
    {"alg": "ES256", "kid": 1}, {"alg": "ES256", "kid": ["one"]}, {"alg": "ES256", "crit": ["exp"], "exp": 1},
    {"alg": "ES256", "b64": False, "crit": ["b64"]},
])  # fmt: skip
def test_a_header_that_means_no_signature_or_more_than_one_is_refused(header: object) -> None:
    with pytest.raises(TokenRefused):
        verified(f"{part(header)}.{part({'sub': 'mallory', **TIMES})}.", jwk(ec_key(), "one"))


@pytest.mark.parametrize("broken", [
    "", ".", "..", "...", "a.b.c", "a.b", "====", f"{part({'alg': 'ES256'})}..", f"{part(b'[' * 100_000)}.e30.",
    f"{part({'alg': 'ES256', 'kid': 'one'})}.{part(b'[' * 100_000)}.AAAA",
])  # fmt: skip
def test_what_is_no_token_is_refused(broken: str) -> None:
    with pytest.raises(TokenRefused):
        verified(broken, jwk(ec_key(), "one"))


def test_a_token_that_was_changed_is_refused() -> None:
    header, body, signature = token(ec_key()).split(".")
    other = part({"sub": "mallory", **TIMES})
    for forged in (f"{header}.{other}.{signature}", f"{header}.{body}.", f"{header}.{body}.{signature[:-4]}AAAA"):
        with pytest.raises(TokenRefused):
            verified(forged, jwk(ec_key(), "one"))


def test_the_claims_of_a_signed_token_may_be_none() -> None:
    for payload in (b"[1]", b"1", b"not json", b"[" * 100_000):
        with pytest.raises(TokenRefused):
            verified(ALLOWED.encode(payload, ec_key(), "ES256", {"kid": "one"}), jwk(ec_key(), "one"))


@pytest.mark.parametrize(("data", "reason"), [
    (b"", "it is not JSON"),
    (b"[" * 100_000, "it is not JSON"),
    (b"[]", 'no list of "keys"'),
    (b'{"keys": {}}', 'no list of "keys"'),
    (b'{"keys": []}', "none of its 0 keys"),
    (b'{"keys": [1, {}, {"kty": "RSA"}, {"kty": ["RSA"]}, {"kty": "oct", "k": "c2VjcmV0"}]}', "none of its 5 keys"),
    (jwks(jwk(ec_key(), "one", use="enc")), "none of its 1 keys"),
    (jwks(jwk(ec_key(), "one", key_ops=["sign"])), "none of its 1 keys"),
    (jwks(jwk(ec_key(), "one", alg="HS256")), "none of its 1 keys"),
    (jwks(jwk(ec_key(), "one", d="AAAA")), "none of its 1 keys"),
    (jwks(jwk(rsa_key(1024), "one")), "none of its 1 keys"),
])  # fmt: skip
def test_keys_that_check_nothing_are_no_keys(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableKeys, match=reason):
        key_set(data)


def test_a_token_proves_its_subject_until_it_ends() -> None:
    claims = {**TIMES, "sub": " alice ", "exp": NOW_S + 1.5}
    assert proven(claims, OPTIONS, NOW_MS) == BearerToken("alice", NOW_MS + 1500)
    email = OPTIONS._replace(sub_claim="email", scope_claim="scp")
    assert proven({**TIMES, "email": "a@b", "scp": ["x", "y"]}, email, NOW_MS).principal == "a@b"


STRICT = OPTIONS._replace(audiences=frozenset({"kafka"}))


@pytest.mark.parametrize("expected", [{"aud": "kafka"}, {"aud": ["x", "kafka"]}])
def test_a_token_is_for_the_audience_that_is_expected(expected: dict[str, object]) -> None:
    ours = OPTIONS._replace(audiences=frozenset({"kafka", "other"}))
    assert proven({**TIMES, "sub": "a", **expected}, ours, NOW_MS).principal == "a"


@pytest.mark.parametrize(("claims", "reason"), [
    ({"exp": None}, "exp is missing"),
    ({"iat": None}, "iat is missing"),
    ({"exp": NOW_S - 30}, "it expired at"),
    ({"exp": NOW_S - 11, "iat": NOW_S - 10}, "before it was issued"),
    ({"nbf": NOW_S + 31}, "it becomes valid at"),
    ({"nbf": NOW_S + 61}, "before it becomes valid"),
    ({"exp": "tomorrow"}, "exp is not a time"),
    ({"exp": True}, "exp is not a time"),
    ({"exp": float("inf")}, "exp is not a time"),
    ({"exp": float("nan")}, "exp is not a time"),
    ({"exp": 10**400}, "exp is not a time"),
    ({"exp": -1}, "exp is not a time"),
    ({"nbf": []}, "nbf is not a time"),
    ({"sub": None}, "sub is missing or blank"),
    ({"sub": " "}, "sub is missing or blank"),
    ({"sub": ["alice"]}, "sub is missing or blank"),
    ({"aud": "others"}, "audience"),
    ({"aud": {}}, "audience"),
    ({"aud": []}, "audience"),
    ({"scope": ["a", "a"]}, "repeated"),
    ({"scope": ["a", 1]}, "not strings"),
    ({"scope": " "}, "blank"),
])  # fmt: skip
def test_claims_that_prove_nothing_now_are_refused(claims: dict[str, object], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        proven({**TIMES, "sub": "alice", "aud": "kafka", **claims}, STRICT, NOW_MS)


@pytest.mark.parametrize("audience", [None, "others", ["a", "b"]])
def test_without_an_expected_audience_and_issuer_any_is_accepted(audience: object) -> None:
    """The broker starts so only if its options allow it."""
    claims = {**TIMES, "sub": "alice", "aud": audience, "iss": "https://any"}
    assert proven(claims, OPTIONS, NOW_MS).principal == "alice"


def test_the_clocks_may_differ_by_the_skew_and_no_more() -> None:
    token_ = {**TIMES, "sub": "alice", "nbf": NOW_S + 30}
    assert proven(token_, OPTIONS, NOW_MS)
    assert proven({**TIMES, "sub": "alice", "exp": NOW_S - 9}, OPTIONS, NOW_MS + 20_999)
    with pytest.raises(TokenRefused):
        proven({**TIMES, "sub": "alice", "exp": NOW_S - 9}, OPTIONS, NOW_MS + 21_000)


@pytest.mark.parametrize("issuer", [None, "https://other", ["https://issuer"], "https://issuer/"])
def test_a_token_of_another_issuer_is_refused(issuer: object) -> None:
    with pytest.raises(TokenRefused, match="the issuer"):
        proven({**TIMES, "sub": "alice", "iss": issuer}, OPTIONS._replace(issuer="https://issuer"), NOW_MS)


def test_an_audience_that_is_expected_has_to_be_there() -> None:
    with pytest.raises(TokenRefused, match="audience"):
        proven({**TIMES, "sub": "alice"}, OPTIONS._replace(audiences=frozenset({"kafka"})), NOW_MS)


def test_a_token_that_nobody_signed_is_taken_as_it_is() -> None:
    ended = unsigned(**TIMES)
    assert unsecured(ended, PLAIN, NOW_MS) == BearerToken("alice", NOW_MS + 60_000)
    assert unsecured(ended, PLAIN._replace(required_scope=("kafka",)), NOW_MS).principal == "alice"


@pytest.mark.parametrize(("wrong", "reason"), [
    (token(ec_key()), "an empty signature"),
    ("a.b", "two parts"),
    (unsigned({"alg": "ES256"}, **TIMES), "must have 'none'"),
    (unsigned([], **TIMES), "not an unsigned JWT"),
    (f"~~~~.{part({})}.", "not an unsigned JWT"),
    (f"{part(b'[' * 100_000)}.{part({})}.", "not an unsigned JWT"),
    (unsigned(**{**TIMES, "sub": None}), "No principal name in JWT claim: sub"),
    (unsigned(**{**TIMES, "sub": 7}), "No principal name in JWT claim: sub"),
    (unsigned(**{**TIMES, "exp": None}), "exp is missing"),
    (unsigned(**{**TIMES, "exp": NOW_S}), "it expired at"),
    (unsigned(**{**TIMES, "iat": NOW_S + 1}), "in the future"),
    (unsigned(iat=NOW_S - 1, exp=NOW_S - 2), "it expired at"),
])  # fmt: skip
def test_other_unsigned_tokens_are_refused(wrong: str, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        unsecured(wrong, PLAIN, NOW_MS)


def test_an_unsigned_token_without_a_scope_is_told_which() -> None:
    with pytest.raises(TokenRefused) as failed:
        unsecured(unsigned(**TIMES), PLAIN._replace(required_scope=("kafka", "admin")), NOW_MS)
    assert failed.value.scope == "[kafka, admin]"
