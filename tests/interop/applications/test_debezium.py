"""Debezium, which copies the changes of a table of PostgreSQL exactly once; `make test-applications`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.applications.connect import WORKER, Jvm, Reader, put, until
from tests.interop.applications.figures import EXACTLY_ONCE, Figures
from tests.interop.applications.postgres import USER, Postgres
from tests.interop.brokers import ALONE, Broker
from tests.interop.processes import free_port

pytestmark = [pytest.mark.applications, pytest.mark.timeout(900)]

ROWS = 4_000
TRANSACTIONS = 20
"""Transactions in which all rows are updated once."""
CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture
def properties() -> dict[str, str]:
    return dict(ALONE)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[Postgres]:
    server = Postgres(tmp_path)
    try:
        server.start()
        yield server
    finally:
        server.forget()


def connector(postgres: Postgres) -> dict[str, str]:
    """Returns the settings of the connector."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": USER,
        "database.password": "",
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "table.include.list": "public.account",
        "exactly.once.support": "required",
        "slot.drop.on.stop": "false",
    }


def update(postgres: Postgres) -> None:
    """Updates each row once."""
    postgres.sql(
        *(
            f"UPDATE account SET version = version + 1, amount = amount + id WHERE id % {TRANSACTIONS} = {part}"
            for part in range(TRANSACTIONS)
        )
    )


def table_of(events: Iterable[dict[str, Any]]) -> dict[int, tuple[int, int]]:
    """Returns the rows that the events make: version and amount by id."""
    rows: dict[int, tuple[int, int]] = {}
    for event in events:
        if after := event["after"]:
            rows[after["id"]] = after["version"], after["amount"]
        else:
            del rows[event["before"]["id"]]
    return rows


def versions(events: Iterable[dict[str, Any]]) -> dict[int, list[int]]:
    """Returns the versions of each row that is not deleted, in the order of the events."""
    found: dict[int, list[int]] = defaultdict(list)
    for event in events:
        if event["after"]:
            found[event["after"]["id"]].append(event["after"]["version"])
    return found


def test_each_change_of_a_table_comes_once_when_connect_and_the_broker_are_killed(
    broker: Broker, postgres: Postgres, tmp_path: Path, keep: Callable[[Figures], None]
) -> None:
    port = free_port()
    converters = {"key.converter": CONVERTER, "value.converter": CONVERTER, "value.converter.schemas.enable": "false"}
    worker = Jvm(
        "debezium", tmp_path, "org.apache.kafka.connect.cli.ConnectDistributed",
        {**WORKER, **converters, "bootstrap.servers": broker.bootstrap, "listeners": f"http://127.0.0.1:{port}"},
        pom="debezium",
    )  # fmt: skip
    postgres.sql(
        "CREATE TABLE account (id int PRIMARY KEY, version int NOT NULL, amount int NOT NULL)",
        f"INSERT INTO account SELECT id, 0, 0 FROM generate_series(1, {ROWS}) AS id",
    )
    worker.start()
    until(lambda: put(port, "shop", connector(postgres)), "the connector")
    reader = Reader(broker.bootstrap, "shop.public.account")
    until(lambda: reader.has(ROWS), "the snapshot")
    update(postgres)
    until(lambda: reader.has(ROWS + ROWS // 4), "a part of the first updates")
    worker.kill9()
    update(postgres)
    worker.start()
    until(lambda: reader.has(2 * ROWS + ROWS // 4), "a part of the second updates")
    broker.kill9()
    update(postgres)
    broker.restart()
    until(lambda: reader.has(4 * ROWS), "all updates")
    postgres.sql("DELETE FROM account WHERE id % 4 = 0")
    until(lambda: reader.has(4 * ROWS + ROWS // 4), "the deletions")
    events = [json.loads(value) for value in reader.values]
    expected = 4 * ROWS + ROWS // 4
    assert len(events) == expected
    assert set(map(tuple, versions(events).values())) == {(0, 1, 2, 3)}
    rows = (map(int, line.split("|")) for line in postgres.sql("SELECT id, version, amount FROM account").split())
    assert table_of(events) == {number: (version, amount) for number, version, amount in rows}
    keep(Figures("Debezium", "each change of a table", EXACTLY_ONCE, expected, len(events), "worker, broker"))
    worker.forget()
