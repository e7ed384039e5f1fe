"""Tests SASL OAUTHBEARER: the grammar of its messages, and the form of a rejection."""

from __future__ import annotations

import pytest

from protocol.sasl.exchange import ExchangeStep, ProvenIdentity, SaslError
from protocol.sasl.oauthbearer import BearerToken, OAuthBearerServer, TokenRefused, initial_message


def alice(_: str) -> BearerToken:
    return BearerToken("alice", 1_000)


def refuse(_: str) -> BearerToken:
    raise TokenRefused("it has ended")


@pytest.mark.parametrize(("message", "expected"), [
    (b"n,,\x01auth=Bearer abc.def.ghi\x01\x01", ("", "abc.def.ghi")),
    (b"n,a=alice,\x01auth=Bearer abc\x01\x01", ("alice", "abc")),
    (b"n,a=al=2Cice=3D,\x01auth=bearer   a-_~+/.9==\x01\x01", ("al,ice=", "a-_~+/.9==")),
    (b"n,,\x01logicalCluster=lkc-1\x01auth=BEARER abc\x01poolId=p=1\t2\x01\x01", ("", "abc")),
])  # fmt: skip
def test_a_first_message_names_a_token(message: bytes, expected: tuple[str, str]) -> None:
    assert initial_message(message) == expected


@pytest.mark.parametrize(("message", "reason"), [
    (b"", "Invalid OAUTHBEARER client first message"),
    (b"\x01", "Invalid OAUTHBEARER client first message"),
    (b"n,,\x01auth=Bearer abc\x01", "Invalid OAUTHBEARER client first message"),
    (b"y,,\x01auth=Bearer abc\x01\x01", "Invalid OAUTHBEARER client first message"),
    (b"n,,\x01auth=Bearer abc\x01\x01 ", "Invalid OAUTHBEARER client first message"),
    (b"n,,\x01auth=Bearer abc\x01k1=v\x01\x01", "Invalid OAUTHBEARER client first message"),
    (b"n,,\x01auth=Bearer \xff\x01\x01", "Invalid OAUTHBEARER client first message"),
    (b"n,,\x01scope=x\x01\x01", "'auth' not specified"),
    (b"n,,\x01auth=Bearer\x01\x01", "invalid 'auth' format"),
    (b"n,,\x01auth=Bearer a b\x01\x01", "invalid 'auth' format"),
    (b"n,,\x01auth=Basic abc\x01\x01", "Invalid scheme"),
])  # fmt: skip
def test_anything_else_is_refused_without_a_word_of_why(message: bytes, reason: str) -> None:
    with pytest.raises(SaslError) as failed:
        OAuthBearerServer(alice).step(message)
    assert reason in failed.value.reason
    assert failed.value.client_message is None


def test_a_valid_token_proves_its_principal_until_it_ends() -> None:
    step = OAuthBearerServer(alice).step(b"n,,\x01auth=Bearer abc\x01\x01")
    assert step == ExchangeStep(b"", ProvenIdentity("alice", 1_000))


def test_who_would_be_somebody_else_is_told_so() -> None:
    with pytest.raises(SaslError) as failed:
        OAuthBearerServer(alice).step(b"n,a=bob,\x01auth=Bearer abc\x01\x01")
    assert failed.value.client_message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )


@pytest.mark.parametrize("then", [b"\x01", b"n,,\x01auth=Bearer abc\x01\x01", b""])
def test_a_refusal_is_json_that_is_acknowledged_and_final(then: bytes) -> None:
    server = OAuthBearerServer(refuse)
    step = server.step(b"n,,\x01auth=Bearer abc\x01\x01")
    assert (step.answer, step.identity) == (b'{"status":"invalid_token"}', None)
    assert step.refusal
    with pytest.raises(SaslError) as failed:
        server.step(then)
    assert (failed.value.reason, failed.value.client_message) == ("it has ended", '{"status":"invalid_token"}')


def test_a_token_without_a_scope_is_told_which() -> None:
    def lacks(_: str) -> BearerToken:
        raise TokenRefused("no", scope="[a, b]")

    step = OAuthBearerServer(lacks).step(b"n,,\x01auth=Bearer abc\x01\x01")
    assert step.answer == b'{"status":"insufficient_scope", "scope":"[a, b]"}'
