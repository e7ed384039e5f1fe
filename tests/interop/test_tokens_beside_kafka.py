"""Compares tokens with Apache Kafka: both accept the same, and reject with the same messages, also to Kafka's own
tool."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer

from protocol.messages import create_delegation_token as create
from protocol.messages import describe_delegation_token as describe
from protocol.messages import expire_delegation_token as expire
from protocol.messages import renew_delegation_token as renew
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.sasl.plain import plain_message
from tests.broker.security import issuer
from tests.broker.security.issuer import bearer, ec_key, jwk, part, rsa_key, unsigned
from tests.interop import jvm
from tests.interop.authenticating import (
    AUDIENCE,
    ISSUER,
    PLAIN_MODULE,
    SCRAM_MODULE,
    ApacheKafkaWithUsers,
    OdradekWithUsers,
    allow_files,
    write_keys,
)
from tests.interop.processes import run
from tests.waiting import eventually, wait_until
from tests.wire import WireClient

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

PATIENCE_S = 60
BASIC = "basic"
"""A message with a credential that is not a token."""


class Brokers(NamedTuple):
    odradek: OdradekWithUsers
    apache: ApacheKafkaWithUsers
    folder: Path


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    folder = tmp_path_factory.mktemp("tokens")
    keys = write_keys(folder)
    with pytest.MonkeyPatch.context() as patch:
        allow_files(patch, keys, folder / "token.jwt")
        made = Brokers(
            OdradekWithUsers(folder / "odradek", keys), ApacheKafkaWithUsers(folder / "apache", keys), folder
        )
        made.odradek.start()
        made.apache.start()
        yield made
        for one in (made.odradek, made.apache):
            one.stop()
            one.forget()


def token(*, key: str = "ec", **changes: Any) -> str:
    """Returns a token for this audience, of this issuer."""
    usual = {"aud": AUDIENCE, "iss": ISSUER, **changes}
    keys: dict[str, Any] = {"ec": (ec_key(), "ES256"), "rsa": (rsa_key(), "RS256")}
    private_key, algorithm = keys[key]
    return issuer.token(private_key, usual.pop("kid", key), usual.pop("algorithm", algorithm), **usual)


def forged(algorithm: str) -> str:
    """Returns a token signed with the public key, which everybody knows."""
    header, body = part({"alg": algorithm, "kid": "rsa"}), part(issuer.claims(aud=AUDIENCE, iss=ISSUER))
    secret = str(jwk(rsa_key(), "rsa")["n"]).encode()
    return f"{header}.{body}.{part(hmac.digest(secret, f'{header}.{body}'.encode(), hashlib.sha256))}"


def messages() -> dict[str, bytes]:
    """Returns first messages, by their content."""
    now = int(time.time())
    tokens = {
        "elliptic curve": token(),
        "rsa": token(key="rsa"),
        "pss": token(key="rsa", algorithm="PS256"),
        "longest rsa": token(key="rsa", algorithm="RS512"),
        "no kid": token(kid=None),
        "no kid, rsa": token(key="rsa", kid=None),
        "unknown kid": token(kid="nobody"),
        "kid of another": token(kid="rsa"),
        "another key": issuer.token(ec_key("other"), "ec", aud=AUDIENCE, iss=ISSUER),
        "ended": token(exp=now - 60, iat=now - 120),
        "ended within the skew": token(exp=now - 5, iat=now - 120),
        "no end": token(exp=None),
        "end is text": token(exp="tomorrow"),
        "no issue": token(iat=None),
        "issued later": token(iat=now + 600),
        "ends before it was issued": token(iat=now + 60, exp=now + 30),
        "begins later": token(nbf=now + 600),
        "begins within the skew": token(nbf=now + 20),
        "other audience": token(aud="others"),
        "no audience": token(aud=None),
        "audiences": token(aud=["others", AUDIENCE]),
        "other issuer": token(iss=f"{ISSUER}/"),
        "no issuer": token(iss=None),
        "no scope": token(scope=None),
        "scopes": token(scope=["a", "b"]),
        "scope twice": token(scope=["a", "a"]),
        "blank scope": token(scope=" "),
        "empty scopes": token(scope=[]),
        "no subject": token(sub=None),
        "blank subject": token(sub=" "),
        "subject with spaces": token(sub=" alice "),
        "subject is a number": token(sub=7),
        "unsigned": unsigned(aud=AUDIENCE, iss=ISSUER),
        "hmac": forged("HS256"),
        "changed": token()[:-6] + "AAAAAA",
        "junk": "junk",
        "empty parts": "..",
        "critical extension": token(header={"crit": ["x"], "x": 1}),
    }
    return {
        **{name: bearer(one) for name, one in tokens.items()},
        "extensions": bearer(token(), "logicalCluster=a", "pool=b"),
        "extension without a name": bearer(token(), "=b"),
        "authorization id": bearer(token(), authzid="alice"),
        "other authorization id": bearer(token(), authzid="bob"),
        "no token": b"n,,\x01scope=x\x01\x01",
        BASIC: b"n,,\x01auth=Basic abc\x01\x01",
        "nothing": b"\x01",
    }


def outcome(bootstrap: str, message: bytes) -> list[object]:
    """Returns a broker's answers to a first message, and to the acknowledgement of a rejection."""
    client = WireClient(bootstrap)
    client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), SaslHandshakeResponse, 1)
    answers: list[object] = []
    try:
        for sent in (message, b"\x01"):
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=sent), SaslAuthenticateResponse, 2)
            answers += [answer.error_code, answer.error_message, bytes(answer.auth_bytes)]
            answers.append(round(answer.session_lifetime_ms / 60_000))
            if answer.error_code or not answer.auth_bytes:
                break
    except ConnectionError:
        answers.append("closed")
    client.close()
    return answers


def test_the_same_tokens_are_taken_and_refused_in_the_same_words(brokers: Brokers) -> None:
    different = {}
    taken = 0
    for name, message in messages().items():
        ours, theirs = outcome(brokers.odradek.secured, message), outcome(brokers.apache.secured, message)
        taken += ours[:3] == [0, "", b""]
        if ours != theirs:
            different[name] = (ours, theirs)
    assert different.pop(BASIC)[1] == ["closed"]  # Apache Kafka fails over it, and answers nothing
    assert not different
    assert taken > 10


class Asking:
    """Requests delegation tokens from both brokers as a user; returns answers without random values and times."""

    def __init__(self, bootstrap: str, user: str) -> None:
        self.client = WireClient(bootstrap)
        self.client.ask(SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse, 1)
        message = plain_message(user, f"{user}-secret")
        answer = self.client.ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, 2)
        assert answer.error_code == 0

    def create(
        self, *renewers: str, owner: tuple[str, str] | None = None, kind: str = "User", life_ms: int = -1
    ) -> Any:
        named = [create.CreatableRenewers(principal_type=kind, principal_name=name) for name in renewers]
        request = create.CreateDelegationTokenRequest(
            owner_principal_type=owner[0] if owner else None,
            owner_principal_name=owner[1] if owner else None,
            renewers=named,
            max_lifetime_ms=life_ms,
        )
        return self.client.ask(request, create.CreateDelegationTokenResponse, 3)

    def renew(self, key: bytes, period_ms: int = -1) -> Any:
        request = renew.RenewDelegationTokenRequest(hmac=key, renew_period_ms=period_ms)
        return self.client.ask(request, renew.RenewDelegationTokenResponse, 2)

    def expire(self, key: bytes, period_ms: int) -> Any:
        request = expire.ExpireDelegationTokenRequest(hmac=key, expiry_time_period_ms=period_ms)
        return self.client.ask(request, expire.ExpireDelegationTokenResponse, 2)

    def describe(self, *owners: str, everybody: bool = False) -> Any:
        named = [describe.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
        request = describe.DescribeDelegationTokenRequest(owners=None if everybody else named)
        answer = self.client.ask(request, describe.DescribeDelegationTokenResponse, 3)
        answer.tokens.sort(key=lambda token: (token.principal_name, len(token.renewers)))  # a hash table has them
        return answer


def plain(answer: Any, begun_ms: float) -> str:
    """Returns an answer with its times in minutes since the start, without random values."""

    def minutes(match: re.Match[str]) -> str:
        value = int(match[0])
        return match[0] if value < 1_000_000_000_000 else f"+{round((value - begun_ms) / 60_000)} min"

    text = re.sub(
        r"(token_id=)'[^']+'", r"\1ID", re.sub(r"(hmac=)b('.{20,}?'|\".{20,}?\")(?=[,)])", r"\1KEY", str(answer))
    )
    return re.sub(r"(?<![\w'])-?\d+", minutes, text)


def transcript(bootstrap: str) -> list[str]:
    """Runs the lives of some tokens. A broker's metadata may lag behind its controller's."""
    begun_ms = time.time() * 1000
    alice, bob = Asking(bootstrap, "alice"), Asking(bootstrap, "bob")
    first, second = alice.create("bob"), bob.create(life_ms=3_600_000)
    answers = [first, second, alice.create("admins", kind="Group"), alice.create(owner=("User", "alice"))]
    gone = alice.create()
    key = bytes(first.hmac)
    wait_until(lambda: len(alice.describe(everybody=True).tokens) >= 3)
    answers += [
        alice.renew(key), bob.renew(key, 60_000), bob.renew(key, 1 << 62), alice.renew(bytes(second.hmac)),
        alice.renew(b"nothing"), alice.expire(b"", -1), alice.expire(bytes(second.hmac), -1), bob.expire(key, 60_000),
        alice.expire(bytes(gone.hmac), -1),
    ]  # fmt: skip
    wait_until(lambda: len(alice.describe(everybody=True).tokens) <= 2)
    answers += [alice.renew(bytes(gone.hmac)), bob.describe("bob"), alice.describe(), alice.describe("nobody")]
    lines = [plain(answer, begun_ms) for answer in answers]
    ordered = sorted(plain(one, begun_ms) for one in alice.describe(everybody=True).tokens)
    return [re.sub(r"DescribedDelegationToken\(", "(", one) for one in (*lines, *ordered)]


def test_delegation_tokens_are_answered_in_the_same_way(brokers: Brokers) -> None:
    ours, theirs = transcript(brokers.odradek.secured), transcript(brokers.apache.secured)
    assert ours == theirs
    assert any("KEY" in line for line in ours)


class TokenTool:
    """Apache Kafka's token tool and its producer, for one broker; returns their output without random values and
    times."""

    def __init__(self, broker: OdradekWithUsers | ApacheKafkaWithUsers, folder: Path) -> None:
        self.bootstrap = broker.secured
        self.begun_s = time.time()
        self._folder = folder
        self._drawn: dict[str, str] = {}

    def settings(self, name: str, mechanism: str, login: str) -> str:
        """Writes the settings of a client to a file."""
        file = self._folder / f"{name}-{self.bootstrap.rpartition(':')[2]}.properties"
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": login}
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        return str(file)

    def of_user(self, name: str) -> str:
        return self.settings(name, "PLAIN", f'{PLAIN_MODULE} required username="{name}" password="{name}-secret";')

    def of_token(self, token_id: str, key: str) -> str:
        self._drawn |= {token_id: "ID", key: "KEY"}
        login = f'{SCRAM_MODULE} required username="{token_id}" password="{key}" tokenauth="true";'
        return self.settings("token", "SCRAM-SHA-256", login)

    def run(self, settings: str, *words: str) -> str:
        """Returns the lines of the tool, or its error."""
        where = ("--bootstrap-server", self.bootstrap, "--command-config", settings)
        ended = run(jvm.command_of("kafka-delegation-tokens", *where, *words), check=False)
        refused = re.findall(rb"^org\.apache\.kafka\.common\.errors\..*$", ended.stderr, re.MULTILINE)[:1]
        assert bool(refused) is bool(ended.returncode), ended.stderr.decode()
        return b"\n".join([ended.stdout, *refused]).decode()

    def produce(self, settings: str, topic: str) -> str:
        """Produces a record with a token; returns the reason of a rejection, None if it is accepted."""
        where = ("--bootstrap-server", self.bootstrap, "--command-config", settings, "--topic", topic)
        ended = run(jvm.command_of("kafka-console-producer", *where), stdin=b"hello\n", check=False)
        refused = re.search(rb"SaslAuthenticationException: (.*)", ended.stdout + ended.stderr)
        assert refused or not ended.returncode, ended.stderr.decode()
        return refused[1].decode() if refused else ""

    def plain(self, text: str) -> list[str]:
        """Returns the lines of a text, normalized."""
        for drawn, name in self._drawn.items():
            text = text.replace(drawn, name)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", lambda match: f"+{self._hours(match[0])} h", text)
        return [" ".join(line.split()) for line in text.splitlines() if line.strip()]

    def _hours(self, text: str) -> int:
        return round((datetime.strptime(text, "%Y-%m-%dT%H:%M").timestamp() - self.begun_s) / 3600)

    def wait_for(self, count: int) -> None:
        """Waits until carol has this number of tokens, because a broker's metadata may lag behind its controller's."""
        carol = Asking(self.bootstrap, "carol")
        eventually(lambda: len(carol.describe("carol").tokens), count)


def life_of_a_token(tool: TokenTool) -> list[list[str]]:
    """Returns the tool's output over a token's life, and the results of clients that use it meanwhile."""
    carol, bob = tool.of_user("carol"), tool.of_user("bob")
    of_carol = ("--describe", "--owner-principal", "User:carol")
    create = ("--create", "--max-life-time-period", "-1")
    made = tool.run(carol, *create, "--renewer-principal", "User:bob")
    row = re.search(r"^(\S+) +(\S+==) +User:carol +User:carol +\[User:bob\] ", made, re.MULTILINE)
    assert row is not None, made
    token, key = tool.of_token(*row.groups()), row[2]
    tool.wait_for(1)
    outputs = [
        made, tool.run(carol, *of_carol), tool.run(bob, *of_carol), tool.produce(token, "by-token"),
        tool.run(token, *create), tool.run(bob, "--renew", "--renew-time-period", "7200000", "--hmac", key),
        tool.run(carol, "--expire", "--expiry-time-period", "-1", "--hmac", key),
    ]  # fmt: skip
    tool.wait_for(0)
    outputs += [
        tool.run(carol, *of_carol), tool.run(bob, "--renew", "--renew-time-period", "-1", "--hmac", key),
        tool.produce(token, "by-token"),
    ]  # fmt: skip
    return [tool.plain(text) for text in outputs]


def test_apache_kafkas_tool_and_producer_hear_the_same_of_a_token(brokers: Brokers) -> None:
    tools = [TokenTool(broker, brokers.folder) for broker in (brokers.odradek, brokers.apache)]
    ours, theirs = map(life_of_a_token, tools)
    assert ours == theirs
    assert ours[0][-1] == "ID KEY User:carol User:carol [User:bob] +0 h +24 h +168 h"
    assert [len(one) for one in (ours[3], ours[-1])] == [0, 1]  # with the token it is in, and with the expired one out
    with Consumer({"bootstrap.servers": brokers.odradek.bootstrap, "group.id": "by-token",
                   "auto.offset.reset": "earliest"}) as consumer:  # fmt: skip
        consumer.subscribe(["by-token"])
        (record,) = consumer.consume(1, PATIENCE_S)
        assert record.value() == b"hello"
