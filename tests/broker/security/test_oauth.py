"""Tests a broker whose clients authenticate by tokens."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.oauth_options import OAUTH_MODULE, SIGNED_HANDLERS, UNSECURED_HANDLER
from protocol.config import ConfigError
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tests.broker.inprocess import LONG_S, Client, InProcess, request_frame
from tests.broker.security.issuer import Issuer, bearer, ec_key, jwk, jwks, serving, token, unsigned
from tests.broker.security.sasl import authenticate, closing, handshake, raw, stranger
from tests.clock import running_clock
from tests.log_lines import Line, problems

PREFIX = "listener.name.sasl_plaintext.oauthbearer."
OPTIONS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "connection.failed.authentication.delay.ms": "0",
    "sasl.oauthbearer.allow.unverified.audience": "true",
    "sasl.oauthbearer.allow.unverified.issuer": "true",
}
ALL_TOPICS = MetadataRequest(topics=None)
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED


def served(directory: Path, clock: Clock | None = None, /, **options: str) -> InProcess:
    """Yields a broker whose issuer's keys are in a file; options by attribute names."""
    keys = directory / "keys.json"
    keys.write_bytes(jwks(jwk(ec_key(), "one")))
    given = {name.replace("_", "."): value for name, value in options.items()}
    url = {"sasl.oauthbearer.jwks.endpoint.url": keys.as_uri()}
    return InProcess(directory / "data", {**OPTIONS, **url, **given}, clock)


async def log_in(client: Client, of: str, *extensions: str, authzid: str = "") -> SaslAuthenticateResponse:
    await handshake(client, "OAUTHBEARER")
    return await authenticate(client, bearer(of, *extensions, authzid=authzid))


async def test_who_has_a_token_is_its_subject(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        response = await log_in(client, token(ec_key()), "logicalCluster=x", authzid="alice")
        assert (response.error_code, response.auth_bytes) == (0, b"")
        assert response.session_lifetime_ms in range(3_500_000, 3_600_001)
        assert str(client.connection.principal) == "User:alice"
        assert (await client.ask(ALL_TOPICS, 12, MetadataResponse)).brokers


async def test_a_token_that_is_refused_is_told_in_json_and_after_the_acknowledgement(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        response = await log_in(client, token(ec_key(), exp=int(time.time()) - 60))
        assert (response.error_code, response.auth_bytes) == (0, b'{"status":"invalid_token"}')
        response = await authenticate(client, b"\x01")
        assert (response.error_code, response.error_message) == (FAILED, '{"status":"invalid_token"}')
        await closing(client)


async def test_the_log_has_why_a_token_is_refused_though_its_client_takes_the_refusal_for_the_end(
    tmp_path: Path, logged: list[Line]
) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await log_in(client, token(ec_key(), exp=int(time.time()) - 60))
        client.send(request_frame(ALL_TOPICS, 12))
        assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")
    (reason,) = [line.fields["reason"] for line in problems(logged)]
    assert reason.startswith("METADATA is not answered after OAUTHBEARER failed: ")
    assert "exp" in reason


async def test_after_a_refusal_no_other_token_is_looked_at(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await log_in(client, token(ec_key("other")))
        response = await authenticate(client, bearer(token(ec_key())))
        assert response.error_code == FAILED
        await closing(client)


async def test_tokens_of_old_clients_have_no_header(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await handshake(client, "OAUTHBEARER", version=0)
        client.send(raw(bearer(token(ec_key()))))
        assert client.wire.take() == [b""]
        assert str(client.connection.principal) == "User:alice"
        refused = stranger(broker)
        await handshake(refused, "OAUTHBEARER", version=0)
        refused.send(raw(bearer(unsigned())))
        assert refused.wire.take() == [b'{"status":"invalid_token"}']
        refused.send(raw(b"\x01"))
        await closing(refused)
        assert not refused.wire.sent


async def test_a_session_ends_with_its_token_and_is_renewed_by_another_of_the_same_subject(tmp_path: Path) -> None:
    clock = running_clock()
    async with served(tmp_path, clock, sasl_oauthbearer_clock_skew_seconds="0") as broker:
        late, renewing = stranger(broker), stranger(broker)
        short = token(ec_key(), exp=clock.now_ms() / 1000 + 2 * LONG_S)
        for client in (late, renewing):
            assert (await log_in(client, short)).session_lifetime_ms in range(2 * LONG_S * 1000 + 1)
        assert (await late.ask(ALL_TOPICS, 12, MetadataResponse)).brokers
        clock.advance(2 * LONG_S * 1000)
        late.send(request_frame(ALL_TOPICS, 12))
        await closing(late)
        assert not late.wire.sent
        assert (await log_in(renewing, token(ec_key()))).session_lifetime_ms > 3_300_000
        assert (await renewing.ask(ALL_TOPICS, 12, MetadataResponse)).brokers


async def test_a_session_is_not_renewed_by_the_token_of_another(tmp_path: Path) -> None:
    async with served(tmp_path) as broker:
        client = stranger(broker)
        await log_in(client, token(ec_key()))
        response = await log_in(client, token(ec_key(), sub="bob"))
        assert (response.error_code, response.error_message) == (
            FAILED,
            "Cannot change principals during re-authentication from User.alice: User.bob",
        )


async def test_the_limit_of_sessions_holds_for_long_tokens(tmp_path: Path) -> None:
    async with served(tmp_path, connections_max_reauth_ms="60000") as broker:
        assert (await log_in(stranger(broker), token(ec_key()))).session_lifetime_ms in range(59_000, 60_001)


async def test_keys_behind_a_url_are_here_in_time_and_renewed(tmp_path: Path) -> None:
    with serving(Issuer(jwk(ec_key(), "one"))) as issuer:
        async with served(tmp_path, sasl_oauthbearer_jwks_endpoint_url=issuer.url) as broker:
            await eventually(broker, token(ec_key()))
            issuer.keys = (jwk(ec_key("other"), "two"),)
            await eventually(broker, token(ec_key("other"), kid="two"))
            response = await log_in(stranger(broker), token(ec_key()))
            assert response.auth_bytes == b'{"status":"invalid_token"}'
            assert issuer.requests == 2


async def eventually(broker: InProcess, of: str) -> None:
    """Returns once a token is accepted."""
    async with asyncio.timeout(LONG_S):
        while True:
            client = stranger(broker)
            await handshake(client, "OAUTHBEARER")
            client.send(request_frame(SaslAuthenticateRequest(auth_bytes=bearer(of)), 2))
            await asyncio.sleep(0.02)
            if str(client.connection.principal) == "User:alice":
                return


async def test_without_keys_nobody_is_refused_and_nobody_let_in(tmp_path: Path) -> None:
    """A client that is disconnected tries again; a client whose token is rejected may not."""
    with serving(Issuer(jwk(ec_key(), "one"))) as issuer:
        issuer.fails = True
        async with served(tmp_path, sasl_oauthbearer_jwks_endpoint_url=issuer.url) as broker:
            for version in (0, 1):
                client = stranger(broker)
                await handshake(client, "OAUTHBEARER", version)
                message = bearer(token(ec_key()))
                client.send(request_frame(SaslAuthenticateRequest(auth_bytes=message), 2) if version else raw(message))
                assert (client.wire.closing, bytes(client.wire.sent)) == (True, b"")
            issuer.fails = False
            await eventually(broker, token(ec_key()))


async def test_unsigned_tokens_are_taken_where_the_options_say_so(tmp_path: Path) -> None:
    jaas = (
        f'{OAUTH_MODULE} required unsecuredValidatorRequiredScope="kafka" unsecuredValidatorAllowableClockSkewMs="5";'
    )
    async with InProcess(tmp_path, {**OPTIONS, f"{PREFIX}sasl.jaas.config": jaas}) as broker:
        client = stranger(broker)
        assert (await log_in(client, unsigned())).error_code == 0
        assert str(client.connection.principal) == "User:alice"
        lacking = await log_in(stranger(broker), unsigned(scope="other"))
        assert lacking.auth_bytes == b'{"status":"insufficient_scope", "scope":"[kafka]"}'
        signed = await log_in(stranger(broker), token(ec_key()))
        assert signed.auth_bytes == b'{"status":"invalid_token"}'


URL = {"sasl.oauthbearer.jwks.endpoint.url": "https://localhost/keys"}
UNSECURED = {f"{PREFIX}sasl.server.callback.handler.class": UNSECURED_HANDLER}


@pytest.mark.parametrize("options", [
    URL,
    {f"{PREFIX}sasl.oauthbearer.jwks.endpoint.url": "HTTP://localhost/keys"},
    {**URL, f"{PREFIX}sasl.server.callback.handler.class": SIGNED_HANDLERS[0]},
    {**URL, f"{PREFIX}sasl.jaas.config": f"{OAUTH_MODULE} required ;"},
    UNSECURED,
    {**UNSECURED, f"{PREFIX}sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";'},
])  # fmt: skip
def test_a_listener_of_apache_kafkas_is_one_here(options: dict[str, str]) -> None:
    BrokerConfig.parse({**OPTIONS, **options})


@pytest.mark.parametrize(("options", "problem"), [
    ({}, "sasl.oauthbearer.jwks.endpoint.url: it must be the URL of the issuer's keys"),
    ({f"{PREFIX}sasl.jaas.config": f"{OAUTH_MODULE} required;"}, "it must be the URL of the issuer's keys"),
    ({f"{PREFIX}sasl.jaas.config": "my.Module required;", **URL}, "the login module is my.Module"),
    ({f"{PREFIX}sasl.server.callback.handler.class": "my.Handler", **URL}, "my.Handler: Java classes are not"),
    ({**UNSECURED, **URL}, "remove one of them"),
    ({**URL, f"{PREFIX}sasl.jaas.config": f"{OAUTH_MODULE} required unsecuredValidatorRequiredScope=a;"}, "remove one"),
    ({"sasl.oauthbearer.jwks.endpoint.url": "ftp://x/y"}, 'only "http", "https", and "file" protocol are supported'),
    ({"sasl.oauthbearer.jwks.endpoint.url": "keys.json"}, 'only "http", "https", and "file" protocol are supported'),
    ({**URL, "sasl.oauthbearer.jwt.validator.class": "my.Validator"}, "my.Validator: Java classes are not loaded"),
    ({**URL, "sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, "refresh.ms value must be at least 1"),
    ({**URL, "sasl.oauthbearer.clock.skew.seconds": "-1"}, "clock.skew.seconds value must be at least 0"),
    ({**URL, "sasl.oauthbearer.sub.claim.name": " "}, "must not contain only whitespace"),
    ({f"{PREFIX}sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredValidatorRequiredScope="a \\"";'}, "Invalid"),
    ({f"{PREFIX}sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredValidatorAllowableClockSkewMs="-1";'}, "skew"),
    ({**URL, "sasl.oauthbearer.allow.unverified.audience": "false"}, "expected.audience: it must be set"),
    ({**URL, "sasl.oauthbearer.allow.unverified.issuer": "false"}, "expected.issuer: it must be set"),
    (
        {**URL, "sasl.enabled.mechanisms": "SCRAM-SHA-256", "sasl.server.callback.handler.class": SIGNED_HANDLERS[0]},
        "of SCRAM-SHA-256: Java classes are not loaded",
    ),
])  # fmt: skip
def test_options_that_let_in_others_than_they_say_stop_the_start(options: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        BrokerConfig.parse({**OPTIONS, **options})
    assert problem in str(failed.value)


@pytest.mark.parametrize(("content", "problem"), [(None, "No such file"), (b"{}", 'no list of "keys"')])
async def test_a_file_without_keys_stops_the_start(tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / "broken.json").write_bytes(content)
    broker = InProcess(
        tmp_path / "data",
        {**OPTIONS, "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "broken.json").as_uri()},
    )
    with pytest.raises(ConfigError, match=problem):
        await broker.server.start()
    await broker.server.stop()


def test_this_node_does_not_log_in_to_others_by_tokens() -> None:
    with pytest.raises(ConfigError, match="to other nodes only by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        BrokerConfig.parse({
            **OPTIONS, **URL,
            "process.roles": "broker", "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "controller.listener.names": "C", "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "C:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT", "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        })  # fmt: skip
