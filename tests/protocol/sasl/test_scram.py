"""Tests SCRAM on both sides: the RFCs' own exchange, and invalid exchanges."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from protocol.sasl.absent_users import ChallengeShape, absent_user
from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError
from protocol.sasl.scram import CLIENT_FIRST, DIGESTS, Absent, Credential, ScramServer, TokenCredential, base36
from protocol.sasl.scram_client import ScramClient

# RFC 7677, section 3.
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def credential(mechanism: str = "SCRAM-SHA-256", password: str = "pencil", iterations: int = 4096) -> Credential:
    digest = DIGESTS[mechanism]
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), SALT, iterations)
    stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    return Credential(SALT, stored_key, hmac.digest(salted, b"Server Key", digest), iterations)


def absent_of(mechanism: str) -> Absent:
    """Returns a credential for an absent user, as if there were one user of each of two kinds."""
    shapes = {ChallengeShape(None, 4096): 1, ChallengeShape(16, 8192): 1}
    return lambda name: absent_user(b"secret", mechanism, name, shapes)


def server(mechanism: str = "SCRAM-SHA-256", **users: Credential) -> ScramServer:
    keys = users or {"user": credential(mechanism)}
    return ScramServer(mechanism, keys.get, absent_of(mechanism), SERVER_NONCE)


def test_the_exchange_of_the_rfc_is_answered_as_it_has_it() -> None:
    exchange = server()
    assert exchange.step(FIRST) == ExchangeStep(CHALLENGE)
    answer, identity, _ = exchange.step(FINAL)
    assert answer == VERIFIER
    assert identity == ("user", None, False)


def test_the_exchange_of_the_rfc_is_made_as_it_has_it() -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE)
    assert client.first() == FIRST
    assert client.final(CHALLENGE) == FINAL
    client.check(VERIFIER)


@pytest.mark.parametrize("mechanism", DIGESTS)
@pytest.mark.parametrize("name", ["user", "a,b=c", "=2C", "ümlaut", "=3D,"])
def test_both_sides_understand_each_other(mechanism: str, name: str) -> None:
    exchange = server(mechanism, **{name: credential(mechanism, "pass,wörd=")})
    client = ScramClient(mechanism, name, "pass,wörd=", "nonce")
    client_final = client.final(exchange.step(client.first()).answer or b"")
    answer, identity, _ = exchange.step(client_final)
    client.check(answer or b"")
    assert identity is not None
    assert identity.name == name


def test_librdkafka_before_2_6_1_is_let_in_with_its_nonce_twice() -> None:
    exchange = server()
    challenge = (exchange.step(FIRST).answer or b"").decode()
    nonce, salt, iterations = (field[2:] for field in challenge.split(","))
    bare = f"c=biws,r={CLIENT_NONCE}{nonce}"
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", base64.b64decode(salt), int(iterations))
    key = hmac.digest(salted, b"Client Key", "sha256")
    exchanged = f"{FIRST.decode().removeprefix('n,,')},{challenge},{bare}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), exchanged, "sha256")
    proof = base64.b64encode(bytes(left ^ right for left, right in zip(key, signature, strict=True)))
    identity = exchange.step(f"{bare},p=".encode() + proof).identity
    assert identity == ("user", None, False)


@pytest.mark.parametrize("name", ["user", "nobody"])
def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_step(name: str) -> None:
    exchange = server()
    client = ScramClient("SCRAM-SHA-256", name, "wrong", "nonce")
    challenge = exchange.step(client.first()).answer or b""
    with pytest.raises(SaslError) as failed:
        exchange.step(client.final(challenge))
    assert not failed.value.may_be_told


def test_a_token_proves_its_owner_and_a_user_is_no_token() -> None:
    def authenticated(first: bytes, name: str) -> ProvenIdentity | None:
        token = TokenCredential(credential(password="key"), "alice", 7)
        exchange = ScramServer(
            "SCRAM-SHA-256", {"user": credential()}.get, absent_of("SCRAM-SHA-256"), SERVER_NONCE, {"id": token}.get
        )
        client = ScramClient("SCRAM-SHA-256", name, "key" if name == "id" else "pencil", "nonce")
        client._bare = first.decode().removeprefix("n,,")
        return exchange.step(client.final(exchange.step(first).answer or b"")).identity

    assert authenticated(b"n,,n=id,r=nonce,tokenauth=true", "id") == ("alice", 7, True)
    assert authenticated(b"n,,n=user,r=nonce,tokenauth=false", "user") == ("user", None, False)
    for first, name in ((b"n,,n=id,r=nonce", "id"), (b"n,,n=user,r=nonce,tokenauth=true", "user")):
        with pytest.raises(SaslError):
            authenticated(first, name)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,n=user",
        b"y,,n=user,r=nonce",
        b"p=tls-unique,,n=user,r=nonce",
        b"n,,n=us=er,r=nonce",
        b"n,,n=,r=nonce",
        b"n,,n=user,r=non ce",
        b"\xff\xfe\x00",
        b"n,a=other,n=user,r=nonce",
        b"n,,n=user,r=nonce\n",
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        server().step(message)


@pytest.mark.parametrize(
    "changed",
    [
        FINAL.replace(b"c=biws", b"c=eSws"),
        FINAL.replace(b"r=rOpr", b"r=rOpq"),
        FINAL.replace(SERVER_NONCE.encode(), b""),
        FINAL.replace(b"p=dHzb", b"p=eHzb"),
        FINAL[:-4] + b"AAAA",
        FINAL.partition(b"p=")[0] + b"p=",
        FINAL + b",x=y",
        b"",
        b"\0" * 100,
    ],
)
def test_a_final_message_that_proves_nothing_is_refused_and_ends_the_exchange(changed: bytes) -> None:
    exchange = server()
    exchange.step(FIRST)
    with pytest.raises(SaslError):
        exchange.step(changed)
    with pytest.raises(SaslError):
        exchange.step(FINAL)


def test_a_message_of_a_megabyte_is_refused_at_once() -> None:
    assert CLIENT_FIRST.fullmatch("n,,n=" + "=2C" * 300_000 + "=,r=x") is None
    assert CLIENT_FIRST.fullmatch("n,,n=a,r=b" + ",a=b" * 300_000 + ",") is None


@pytest.mark.parametrize(
    "challenge",
    [
        CHALLENGE.replace(b"i=4096", b"i=4095"),
        CHALLENGE.replace(b"i=4096", b"i=16385"),
        CHALLENGE.replace(b"i=4096", b"i=99999999999"),
        CHALLENGE.replace(b"rOpr", b"rOpq"),
        CHALLENGE.replace(SERVER_NONCE.encode(), b""),
        b"e=other-error",
    ],
)
def test_a_client_does_not_answer_a_challenge_that_cannot_be_right(challenge: bytes) -> None:
    with pytest.raises(SaslError):
        ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE).final(challenge)


@pytest.mark.parametrize("answer", [b"", b"e=unknown-user", b"v=", VERIFIER.replace(b"6rri", b"7rri")])
def test_a_client_does_not_believe_a_broker_that_does_not_know_the_user(answer: bytes) -> None:
    client = ScramClient("SCRAM-SHA-256", "user", "pencil", CLIENT_NONCE)
    client.final(CHALLENGE)
    with pytest.raises(SaslError):
        client.check(answer)


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (35, "z"), (36, "10"), (2**64, "3w5e11264sgsg")])
def test_a_number_is_spelled_as_java_spells_it(number: int, text: str) -> None:
    assert base36(number) == text
    assert int(text, 36) == number
