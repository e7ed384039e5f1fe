"""Tests each client of the security matrix with each way to connect: it produces and consumes, or is rejected with a
reason."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.sasl.plain import plain_message
from protocol.sasl.scram_client import ScramClient
from tests.broker.security.issuer import bearer
from tests.interop.broker_log import CLOSED, BrokerLog, check_refusals
from tests.interop.clients.secured import Access, Refused, SecuredClient
from tests.interop.clients.secured_librdkafka import GROUP
from tests.interop.secured_broker import ALICE, SUBJECT, SecuredBroker
from tests.interop.security_matrix import CLIENTS, REFUSALS, WAYS, Client, Refusal, Way, words_of
from tests.wire import WireClient

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

VALUES = [f"value {number}".encode() for number in range(20)]
OPEN, CLOSED_TOPIC = "open", "closed"
SOON_S = 30
WHO = ("User:ANONYMOUS", f"User:{SUBJECT}", f"User:{ALICE}")
"""The users of each way: by SSL without a certificate, with one, and by SASL."""

IN_CI = "confluent-kafka"
"""The client of CI's slice: it has every way to connect."""


ADMITTED = [(client, way) for client in CLIENTS for way in WAYS if way.mechanism not in client.lacks]
TURNED_AWAY = [(client, refusal) for client in CLIENTS for refusal in REFUSALS if refusal.mechanism not in client.lacks]


def in_ci(cells: Sequence[tuple[Client, Way | Refusal]]) -> list[object]:
    """Returns the parameters of a test; those of one client are in CI's slice."""
    return [pytest.param(client, way, marks=pytest.mark.ci if client.name == IN_CI else ()) for client, way in cells]


class Clients(dict[str, SecuredClient]):
    """The clients by name, each made at its first use."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, name: str) -> SecuredClient:
        self[name] = made = next(client for client in CLIENTS if client.name == name).make(self._folder)
        return made


class Scene(NamedTuple):
    """A broker, its log, and the clients."""

    broker: SecuredBroker
    log: BrokerLog
    clients: Clients


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    broker = SecuredBroker(tmp_path_factory.mktemp("secured"))
    broker.format()
    broker.start()
    make_topics(broker)
    folder = tmp_path_factory.mktemp("clients")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", broker.tokens.java_options)
        made = Clients(folder)
        yield Scene(broker, BrokerLog(broker.log), made)
    for client in made.values():
        client.close()
    broker.stop()
    broker.forget()


def topic_of(client: Client, way: Way) -> str:
    return f"{OPEN}-{CLIENTS.index(client)}-{WAYS.index(way)}"


def make_topics(broker: SecuredBroker) -> None:
    """Creates a topic for each cell that all users may use, and one that no user may use."""
    admin = AdminClient(broker.admin)
    names = [*(topic_of(*pair) for pair in ADMITTED), OPEN, CLOSED_TOPIC]
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        created.result(SOON_S)
    entries = [
        AclBinding(ResourceType.TOPIC, OPEN, ResourcePatternType.PREFIXED, who, "*", operation, AclPermissionType.ALLOW)
        for who in WHO
        for operation in (AclOperation.READ, AclOperation.WRITE)
    ] + [
        AclBinding(
            ResourceType.GROUP, GROUP, ResourcePatternType.LITERAL, who, "*", AclOperation.READ, AclPermissionType.ALLOW
        )
        for who in WHO
    ]
    for entry in admin.create_acls(entries).values():
        entry.result(SOON_S)


@pytest.mark.parametrize(("client", "way"), in_ci(ADMITTED), ids=lambda one: one.name)
def test_a_client_gets_in_and_reads_what_it_wrote(scene: Scene, client: Client, way: Way) -> None:
    access, topic = way.access(scene.broker), topic_of(client, way)
    scene.clients[client.name].produce(access, topic, VALUES)
    assert scene.clients[client.name].consume(access, topic, len(VALUES)) == VALUES


@pytest.mark.parametrize(("client", "refusal"), in_ci(TURNED_AWAY), ids=lambda one: one.name)
def test_a_client_is_refused_and_told_why(scene: Scene, client: Client, refusal: Refusal) -> None:
    access, library = refusal.access(scene.broker), scene.clients[client.name]
    topic = CLOSED_TOPIC if refusal.lets_in else OPEN
    scene.log.skip()
    with pytest.raises(Refused) as producing:
        library.produce(access, topic, VALUES)
    with pytest.raises(Refused) as consuming:
        library.consume(access, topic, 1)
    print(
        f"TOLD|{refusal.name}|{client.name}|P|{producing.value}\nTOLD|{refusal.name}|{client.name}|C|{consuming.value}"
    )
    words = words_of(refusal, client.name)
    assert words in str(producing.value)
    assert words in str(consuming.value)
    check_refusals(scene.log.lines())


class Raw(NamedTuple):
    """A rejection without a client library, from its own address: the client's error, and the broker's log line."""

    name: str
    access: str
    reason: str


RAW = [
    Raw("PLAIN", "a wrong password, PLAIN", "authentication by PLAIN failed"),
    Raw("SCRAM", "a wrong password, SCRAM", "the password is wrong, or there is no such user"),
    Raw("nobody", "an unknown user, SCRAM", "the password is wrong, or there is no such user"),
    Raw("ended", "a token that has ended", "authentication by OAUTHBEARER failed"),
    Raw("untrusted", "the broker's authority is unknown to it", "unknown ca"),
    Raw("strange", "its own authority is unknown to the broker", "certificate verify failed"),
    Raw("outdated", "its own certificate has expired", "certificate verify failed"),
    Raw("nameless", "it has no certificate", "did not return a certificate"),
]


def knock(access: Access, source: str) -> None:
    """Tries to connect once."""
    context = None
    if access.has_tls:
        context = ssl.create_default_context(cafile=str(access.authority))
        if access.certificate is not None:
            context.load_cert_chain(access.certificate)
    client = WireClient(access.address, source=source, context=context)
    if access.mechanism:
        client.ask(SaslHandshakeRequest(mechanism=access.mechanism), SaslHandshakeResponse, 1)
        for message in messages(access, client):
            client.ask(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, 2)
    else:
        client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), ApiVersionsResponse, 3)
    client.close()


def messages(access: Access, client: WireClient) -> Iterator[bytes]:
    """Returns the messages of a mechanism."""
    if access.mechanism == "PLAIN":
        yield plain_message(access.user, access.password)
    elif access.mechanism == "OAUTHBEARER":
        yield from (bearer(access.token_text()), b"\x01")
    else:
        exchange = ScramClient(access.mechanism, access.user, access.password, "nonce")
        first = SaslAuthenticateRequest(auth_bytes=exchange.first())
        yield exchange.final(client.ask(first, SaslAuthenticateResponse, 2).auth_bytes)


@pytest.mark.ci
@pytest.mark.parametrize("raw", RAW, ids=[raw.name for raw in RAW])
def test_a_refusal_is_one_line_of_the_log(scene: Scene, raw: Raw) -> None:
    (refusal,) = (one for one in REFUSALS if one.name == raw.access)
    source = f"127.0.1.{RAW.index(raw) + 1}"
    scene.log.skip()
    with contextlib.suppress(OSError):
        knock(refusal.access(scene.broker), source)
    lines = [line for line in scene.log.until(CLOSED, SOON_S) if line.get("peer", "").startswith(f"{source}:")]
    check_refusals(lines)
    (line,) = lines
    assert raw.reason in line["reason"]
