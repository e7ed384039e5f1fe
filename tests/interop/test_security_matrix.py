"""Each client of the security matrix by each way in: it produces and consumes, or is refused, and is told why."""

from __future__ import annotations

from collections.abc import Iterator

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

from tests.interop.clients.secured import CLIENTS, Refused, SecuredClient
from tests.interop.secured_broker import ALICE, SUBJECT, Certificates, SecuredBroker
from tests.interop.security_matrix import REFUSALS, WAYS, Refusal, Way, told

pytestmark = [pytest.mark.odradek_only, pytest.mark.security]

VALUES = [f"value {number}".encode() for number in range(20)]
OPEN, CLOSED = "open", "closed"
SOON_S = 30
WHO = {"User:ANONYMOUS", f"User:{SUBJECT}", f"User:{ALICE}"}
"""Those who get in, by SSL without a certificate, with one, and by SASL."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured")
    made = SecuredBroker(folder / "data", Certificates(folder))
    made.format()
    made.start()
    admin = AdminClient(made.admin)
    names = [f"{OPEN}-{number}" for number in range(len(CLIENTS) * len(WAYS))]
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in (*names, CLOSED)]).values():
        created.result(SOON_S)
    entries = [
        AclBinding(
            ResourceType.TOPIC, OPEN, ResourcePatternType.PREFIXED, who, "*", operation, AclPermissionType.ALLOW
        )
        for who in WHO
        for operation in (AclOperation.READ, AclOperation.WRITE)
    ]
    for made_entry in admin.create_acls(entries).values():
        made_entry.result(SOON_S)
    yield made
    made.stop()
    made.forget()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SecuredClient]]:
    folder = tmp_path_factory.mktemp("clients")
    made = {name: make(folder) for name, make in CLIENTS.items()}
    yield made
    for client in made.values():
        client.close()


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_gets_in_and_reads_what_it_wrote(
    name: str, way: Way, broker: SecuredBroker, clients: dict[str, SecuredClient]
) -> None:
    topic = f"{OPEN}-{[*CLIENTS].index(name) * len(WAYS) + WAYS.index(way)}"
    access = way.access(broker)
    clients[name].produce(access, topic, VALUES)
    assert clients[name].consume(access, topic, len(VALUES)) == VALUES


@pytest.mark.parametrize("refusal", REFUSALS, ids=[one.name for one in REFUSALS])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_refused_and_told_why(
    name: str, refusal: Refusal, broker: SecuredBroker, clients: dict[str, SecuredClient]
) -> None:
    access = refusal.access(broker)
    topic = CLOSED if refusal.lets_in else f"{OPEN}-0"
    words = told(refusal, name)
    with pytest.raises(Refused) as producing:
        clients[name].produce(access, topic, VALUES)
    print(f"{refusal.name} | {name} | {producing.value}")
    assert words in str(producing.value), str(producing.value)
    if refusal.lets_in:
        with pytest.raises(Refused) as consuming:
            clients[name].consume(access, topic, 1)
        assert words in str(consuming.value), str(consuming.value)
