"""Tests a connection before it has authenticated, while it authenticates, after a failure, and when it
reauthenticates."""

from __future__ import annotations

import asyncio
import struct
from itertools import product
from pathlib import Path

import pytest

from broker.handlers import APIS
from broker.handlers.controller import CONTROLLER_APIS
from broker.request.context import ANONYMOUS
from protocol.api_key import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.sasl.plain import plain_message
from tests.broker.asking import batch, produce_request
from tests.broker.doors import doors
from tests.broker.extremes import plausible
from tests.broker.inprocess import LONG_S, InProcess, request_frame
from tests.broker.security.sasl import (
    CLOSED,
    OPEN,
    OPTIONS,
    add_user,
    authenticate,
    closing,
    handshake,
    log_in,
    raw,
    scram,
    served,
    stranger,
)
from tests.clock import running_clock

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
ALL_TOPICS = MetadataRequest(topics=None)
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_user_of_plain_authenticates_and_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        assert (await client.ask(HELLO, 4, ApiVersionsResponse)).error_code == 0
        response = await log_in(client)
        assert (response.error_code, response.auth_bytes, response.session_lifetime_ms) == (0, b"", 0)
        assert str(client.connection.principal) == "User:alice"
        metadata = await client.ask(ALL_TOPICS, 12, MetadataResponse)
        assert [one.port for one in metadata.brokers] == [broker.server.advertised[CLOSED].port]


async def test_each_listener_tells_its_own_port(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        metadata = await broker.client().ask(ALL_TOPICS, 12, MetadataResponse)
        assert [one.port for one in metadata.brokers] == [broker.server.advertised[OPEN].port]
        registered = broker.server.broker.image.brokers[1].endpoints
        assert [(one.name, one.security_protocol) for one in registered] == [("PLAINTEXT", 0), ("SASL_PLAINTEXT", 2)]


async def test_a_user_of_scram_authenticates_by_what_the_metadata_log_has(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        add_user(broker.server, "carol", "carol-secret")
        client = stranger(broker)
        assert (await scram(client, "carol", "carol-secret")).error_code == 0
        assert str(client.connection.principal) == "User:carol"
        for name in ("carol", "nobody"):
            refused = await scram(stranger(broker), name, "wrong")
            assert (refused.error_code, refused.error_message) == (
                FAILED,
                "Authentication failed during authentication due to invalid credentials with SASL mechanism "
                "SCRAM-SHA-256",
            )


async def test_nothing_else_is_answered_to_a_stranger(tmp_path: Path) -> None:
    allowed = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
    async with served(tmp_path) as broker:
        for key, version in product(set(range(-2, 100)) - allowed, range(20)):
            client = stranger(broker)
            header = struct.pack(">hhih", key, version, 7, -1) + bytes(100)
            client.send(raw(header))
            assert (client.wire.closing, bytes(client.wire.sent)) == (True, b""), ApiKey(key)


async def test_the_short_cuts_are_behind_the_same_door(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        await broker.create_topic("t")
        for version in range(3, 13):  # those before 9 take the general way
            client = stranger(broker)
            client.send(request_frame(produce_request("t", (0, batch(b"x"))), version))
            assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")
        log = broker.server.broker.replicas.leader("t", 0)
        assert log.high_watermark == 0


@pytest.mark.parametrize("first", [b"", b"\0", b"\0\x11", b"\x60\x81" + bytes(50)])
async def test_bytes_that_are_no_request_close_the_connection(tmp_path: Path, first: bytes) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        client.send(raw(first))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


async def test_a_mechanism_that_is_not_enabled_is_refused_with_those_that_are(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        response = await handshake(client, "GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        await closing(client)


async def test_who_fails_is_told_why_and_disconnected(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        response = await log_in(client, "alice", "wrong")
        assert (response.error_code, response.error_message) == (
            FAILED,
            "Authentication failed: Invalid username or password",
        )
        assert client.connection.principal == ANONYMOUS
        await closing(client)


async def test_who_fails_waits_for_the_answer_and_nothing_after_it_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, connection_failed_authentication_delay_ms="150") as broker:
        client = stranger(broker)
        await handshake(client, "PLAIN")
        before = asyncio.get_running_loop().time()
        message = SaslAuthenticateRequest(auth_bytes=plain_message("alice", "wrong"))
        right = SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret"))
        client.send(request_frame(message, 2) + request_frame(right, 2) + request_frame(ALL_TOPICS, 12))
        await closing(client)
        assert len(client.wire.take()) == 1
        assert asyncio.get_running_loop().time() - before >= 0.145
        assert client.connection.principal == ANONYMOUS


@pytest.mark.parametrize("has_been_here", [False, True], ids=["between handshake and end", "after its session"])
async def test_no_version_of_any_api_is_answered_out_of_turn(tmp_path: Path, has_been_here: bool) -> None:
    allowed = ApiKey.SASL_HANDSHAKE if has_been_here else ApiKey.SASL_AUTHENTICATE
    options = {"connections_max_reauth_ms": str(int(has_been_here)), "odradek_unauthenticated_connections_max": "10000"}
    async with served(tmp_path, **options) as broker:
        waiting = []
        for door in doors([*APIS, *CONTROLLER_APIS]):
            if door.api.key != allowed:
                client = stranger(broker)
                await (log_in(client) if has_been_here else handshake(client, "PLAIN"))
                waiting.append((client, door))
        await asyncio.sleep(0.01)
        for client, door in waiting:
            client.send(request_frame(plausible(door.api.request, door.version, bytes(16)), door.version))
            assert (client.wire.closing, bytes(client.wire.sent)) == (True, b""), str(door)


async def test_messages_before_the_handshake_are_not_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        client.send(request_frame(SaslAuthenticateRequest(auth_bytes=plain_message("alice", "alice-secret")), 2))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


async def test_an_old_client_sends_its_messages_without_a_header(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "PLAIN", version=0)
        client.send(raw(plain_message("bob", "bob-secret")))
        assert client.wire.take() == [b""]
        assert str(client.connection.principal) == "User:bob"
        assert (await client.ask(ALL_TOPICS, 1, MetadataResponse)).brokers
        refused = stranger(broker)
        await handshake(refused, "PLAIN", version=0)
        refused.send(raw(plain_message("bob", "wrong")))
        await closing(refused)
        assert not refused.wire.sent


async def test_a_listener_without_sasl_says_so(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        assert (await handshake(broker.client(), "PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await authenticate(broker.client(), b"")).error_code == ErrorCode.ILLEGAL_SASL_STATE


async def test_who_is_authenticated_cannot_begin_again_where_sessions_have_no_end(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await log_in(client)
        assert (await handshake(client, "PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert (await authenticate(client, b"")).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert str(client.connection.principal) == "User:alice"


async def test_a_session_is_renewed_by_the_same_user(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        client = stranger(broker)
        assert (await log_in(client)).session_lifetime_ms in range(59_000, 60_001)
        assert (await log_in(client)).session_lifetime_ms in range(59_000, 60_001)
        assert (await client.ask(ALL_TOPICS, 12, MetadataResponse)).brokers


async def test_a_session_is_not_renewed_twice_within_a_second(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        client = stranger(broker)
        await log_in(client)
        await log_in(client)
        assert (await handshake(client, "PLAIN")).error_code == ErrorCode.ILLEGAL_SASL_STATE


async def test_a_session_is_not_renewed_by_another_user(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        client = stranger(broker)
        await log_in(client)
        response = await log_in(client, "bob", "bob-secret")
        assert (response.error_code, response.error_message) == (
            FAILED,
            "Cannot change principals during re-authentication from User.alice: User.bob",
        )
        await closing(client)


async def test_a_session_is_not_renewed_by_another_mechanism(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        add_user(broker.server, "alice", "alice-secret")
        client = stranger(broker)
        await log_in(client)
        await handshake(client, "SCRAM-SHA-256")
        response = await authenticate(client, b"n,,n=alice,r=nonce")
        assert response.error_code == FAILED
        assert "is not supported for re-authentication of mechanism 'PLAIN'" in (response.error_message or "")


async def test_who_renews_a_session_is_a_stranger_until_it_has(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        client = stranger(broker)
        await log_in(client)
        await handshake(client, "PLAIN")
        client.send(request_frame(ALL_TOPICS, 12))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")


async def test_a_session_that_has_ended_answers_nothing_but_a_handshake(tmp_path: Path) -> None:
    clock = running_clock()
    async with served(tmp_path, clock, connections_max_reauth_ms=str(LONG_S * 1000)) as broker:
        late, renewing = stranger(broker), stranger(broker)
        for client in (late, renewing):
            await log_in(client)
        clock.advance(LONG_S * 1000)
        late.send(request_frame(ALL_TOPICS, 12))
        assert (late.wire.closing, bytes(late.wire.sent)) == (True, b"")
        assert (await log_in(renewing)).error_code == 0


async def test_a_mechanism_may_have_a_session_of_its_own(tmp_path: Path) -> None:
    option = "listener.name.sasl_plaintext.plain.connections.max.reauth.ms"
    async with InProcess(tmp_path, {**OPTIONS, option: "5000"}) as broker:
        add_user(broker.server, "carol", "carol-secret")
        assert (await log_in(stranger(broker))).session_lifetime_ms in range(4_000, 5_001)
        assert (await scram(stranger(broker), "carol", "carol-secret")).session_lifetime_ms == 0


async def test_a_stranger_sends_no_large_requests(tmp_path: Path) -> None:
    async with served(tmp_path, sasl_server_max_receive_size="1000") as broker:
        client = stranger(broker)
        client.send(struct.pack(">i", 1001))
        assert client.wire.closing
        authenticated = stranger(broker)
        await log_in(authenticated)
        authenticated.send(struct.pack(">i", 1001) + bytes(10))
        assert not authenticated.wire.closing


async def test_a_stranger_has_so_much_time(tmp_path: Path) -> None:
    async with served(tmp_path, odradek_authentication_timeout_ms="1500") as broker:
        idle, busy, authenticated = (stranger(broker) for _ in range(3))
        await log_in(authenticated)
        busy.send(b"\0")
        await closing(idle)
        await closing(busy)
        assert not authenticated.wire.closing


async def test_there_are_so_many_strangers_and_who_waited_longest_makes_room(tmp_path: Path) -> None:
    async with served(tmp_path, odradek_unauthenticated_connections_max="2") as broker:
        first, second = stranger(broker), stranger(broker)
        await log_in(first)
        third, fourth = stranger(broker), stranger(broker)
        assert [client.wire.aborted for client in (first, second, third, fourth)] == [False, True, False, False]
        assert len(broker.server.listeners[CLOSED].connections) == 4
