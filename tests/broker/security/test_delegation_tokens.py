"""Tests delegation tokens: which clients may request them, over which connections, and the permissions of a client that
uses one."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from broker.config.authorization import STANDARD_AUTHORIZER
from protocol.errors import ErrorCode
from protocol.messages import create_acls as acls
from protocol.messages import create_delegation_token as create
from protocol.messages import describe_delegation_token as describe
from protocol.messages import expire_delegation_token as expire
from protocol.messages import renew_delegation_token as renew
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from protocol.sasl.scram_client import ScramClient
from tests.broker.inprocess import LONG_S, Client, InProcess, request_frame
from tests.broker.security.sasl import authenticate, handshake, log_in, served, stranger
from tests.clock import running_clock

NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
SECRET = {"delegation_token_secret_key": "the secret"}
DESCRIBE, CREATE_TOKENS, DESCRIBE_TOKENS, TOKEN, USER = 8, 13, 14, 6, 7


async def made(
    client: Client, *renewers: str, owner: str | None = None, kind: str = "User", version: int = 3
) -> create.CreateDelegationTokenResponse:
    request = create.CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else kind,
        owner_principal_name=owner,
        renewers=[create.CreatableRenewers(principal_type=kind, principal_name=name) for name in renewers],
        max_lifetime_ms=-1,
    )
    return await client.ask(request, version, create.CreateDelegationTokenResponse)


async def described(client: Client) -> describe.DescribeDelegationTokenResponse:
    return await client.ask(
        describe.DescribeDelegationTokenRequest(owners=None), 3, describe.DescribeDelegationTokenResponse
    )


async def ended(client: Client, key: bytes, period_ms: int = -1) -> int:
    request = expire.ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=period_ms)
    return (await client.ask(request, 2, expire.ExpireDelegationTokenResponse)).error_code


async def renewed(client: Client, key: bytes) -> int:
    request = renew.RenewDelegationTokenRequest(hmac=key, renew_period_ms=-1)
    return (await client.ask(request, 2, renew.RenewDelegationTokenResponse)).error_code


async def show(
    client: Client, token_id: str, key: bytes, mechanism: str = "SCRAM-SHA-256", extension: str = "tokenauth=true"
) -> SaslAuthenticateResponse:
    """Authenticates with a token."""
    await handshake(client, mechanism)
    exchange = ScramClient(mechanism, token_id, base64.b64encode(key).decode(), "nonce")
    exchange._bare += f",{extension}"
    challenge = await authenticate(client, exchange.first())
    return await authenticate(client, exchange.final(challenge.auth_bytes))


async def of_alice(broker: InProcess) -> Client:
    client = stranger(broker)
    await log_in(client)
    return client


async def test_who_shows_a_token_is_its_owner_until_it_ends(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        alice = await of_alice(broker)
        token = await made(alice)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            client = stranger(broker)
            response = await show(client, token.token_id, token.hmac, mechanism)
            assert response.error_code == 0
            assert response.session_lifetime_ms in range(86_300_000, 86_400_001)
            assert str(client.connection.principal) == "User:alice"
            assert (await client.ask(MetadataRequest(topics=None), 12, MetadataResponse)).brokers


async def test_a_token_asks_for_no_tokens(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        token = await made(await of_alice(broker))
        client = stranger(broker)
        await show(client, token.token_id, token.hmac, extension="x=y,tokenauth=TRUE")
        answer = await made(client)
        assert (answer.error_code, answer.expiry_timestamp_ms, answer.hmac) == (NOT_ALLOWED, -1, b"")
        assert (await described(client)).error_code == NOT_ALLOWED
        assert await ended(client, token.hmac) == NOT_ALLOWED
        assert await renewed(client, token.hmac) == NOT_ALLOWED


async def test_a_stranger_on_an_open_listener_asks_for_no_tokens(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        token = await made(await of_alice(broker))
        client = broker.client()
        for version in range(4):
            assert (await made(client, version=version)).error_code == NOT_ALLOWED
        assert (await described(client)).error_code == NOT_ALLOWED
        assert await ended(client, token.hmac) == NOT_ALLOWED
        assert await renewed(client, token.hmac) == NOT_ALLOWED


async def test_without_a_secret_there_are_no_tokens(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        alice = await of_alice(broker)
        assert (await made(alice)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await described(alice)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert await ended(alice, b"") == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


async def test_a_wrong_key_an_id_that_there_is_not_and_a_token_that_ended_are_refused_alike(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        alice = await of_alice(broker)
        token, gone = await made(alice), await made(alice)
        assert await ended(alice, gone.hmac) == 0
        late = await made(alice)
        assert await ended(alice, late.hmac, 0) == 0
        await asyncio.sleep(0.005)
        answers = [
            await show(stranger(broker), token_id, key)
            for token_id, key in (
                (token.token_id, bytes(64)),
                ("nobody", token.hmac),
                (gone.token_id, gone.hmac),
                (late.token_id, late.hmac),
                ("alice", b"alice-secret"),
            )
        ]
        assert {answer.error_code for answer in answers} == {ErrorCode.SASL_AUTHENTICATION_FAILED}
        assert len({answer.error_message for answer in answers}) == 1
        unsaid = await show(stranger(broker), token.token_id, token.hmac, extension="tokenauth=false")
        assert unsaid.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_session_ends_with_its_token(tmp_path: Path) -> None:
    clock, life_ms = running_clock(), 2 * LONG_S * 1000
    async with served(tmp_path, clock, **SECRET, delegation_token_expiry_time_ms=str(life_ms)) as broker:
        token = await made(await of_alice(broker))
        client = stranger(broker)
        assert (await show(client, token.token_id, token.hmac)).session_lifetime_ms in range(1, life_ms + 1)
        assert (await client.ask(MetadataRequest(topics=None), 12, MetadataResponse)).brokers
        clock.advance(life_ms)
        client.send(request_frame(MetadataRequest(topics=None), 12))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


async def test_expired_tokens_are_removed(tmp_path: Path) -> None:
    options = {"delegation_token_expiry_time_ms": "1", "delegation_token_expiry_check_interval_ms": "20"}
    async with served(tmp_path, **SECRET, **options) as broker:
        alice = await of_alice(broker)
        await made(alice)
        async with asyncio.timeout(LONG_S):
            while (await described(alice)).tokens:  # noqa: ASYNC110 (nothing tells of it)
                await asyncio.sleep(0.01)


async def test_tokens_outlive_the_broker(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        token = await made(await of_alice(broker), "bob")
        await broker.settled()
    async with served(tmp_path, **SECRET) as broker:
        assert (await show(stranger(broker), token.token_id, token.hmac)).error_code == 0
        (only,) = (await described(await of_alice(broker))).tokens
        assert (only.hmac, [one.principal_name for one in only.renewers]) == (token.hmac, ["bob"])


async def test_only_users_have_tokens(tmp_path: Path) -> None:
    async with served(tmp_path, **SECRET) as broker:
        alice = await of_alice(broker)
        assert (await made(alice, "admins", kind="Group")).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert (await made(alice, owner="bob", kind="Group")).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def allow(broker: InProcess, operation: int, resource: int, name: str) -> None:
    entry = acls.AclCreation(
        resource_type=resource, resource_name=name, resource_pattern_type=3, principal="User:alice", host="*",
        operation=operation, permission_type=3,
    )  # fmt: skip
    request = acls.CreateAclsRequest(creations=[entry])
    response = await broker.client().ask(request, 3, acls.CreateAclsResponse)
    assert response.results[0].error_code == 0


async def test_tokens_of_others_take_permissions(tmp_path: Path) -> None:
    options = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": "User:ANONYMOUS"}
    async with served(tmp_path, **SECRET, **options) as broker:
        alice, bob = await of_alice(broker), stranger(broker)
        await log_in(bob, "bob", "bob-secret")
        own = await made(bob)
        assert own.error_code == 0
        refused = await made(alice, owner="bob")
        assert (refused.error_code, refused.principal_name) == (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "bob")
        await allow(broker, CREATE_TOKENS, USER, "User:bob")
        for_bob = await made(alice, owner="bob")
        assert for_bob.error_code == 0
        assert [one.token_id for one in (await described(alice)).tokens] == [for_bob.token_id]
        await allow(broker, DESCRIBE, TOKEN, own.token_id)
        assert len((await described(alice)).tokens) == 2
        other = await made(bob)
        assert len((await described(alice)).tokens) == 2
        await allow(broker, DESCRIBE_TOKENS, USER, "User:bob")
        assert {one.token_id for one in (await described(alice)).tokens} == {
            own.token_id,
            for_bob.token_id,
            other.token_id,
        }
        assert await renewed(alice, for_bob.hmac) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert await renewed(bob, for_bob.hmac) == 0
