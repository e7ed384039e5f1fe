"""Tests the pages of transactions, access control entries, users and quotas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from odradek.testing import Acl, Broker
from tests.console.browser import Browser, ConsoleProcess, running_console

ENTRY = {
    "permission": "allow",
    "principal": "User:ana",
    "operation": "read",
    "resource": "topic",
    "name": "orders",
    "pattern": "prefixed",
    "host": "",
}


SASL = ("-X", "security.protocol=SASL_PLAINTEXT")
RIGHTS = [
    Acl(user="ana", operation="ALL", cluster=True),
    Acl(user="ana", operation="ALL", topic="*"),
    Acl(user="ana", operation="ALL", group="*"),
]


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """A broker with an authorizer, on which ana may do everything and bob nothing."""
    with Broker(users={"ana": "secret-of-ana", "bob": "secret-of-bob"}, acls=RIGHTS) as broker:
        yield broker


@pytest.fixture(scope="module")
def users_console(secured: Broker) -> Iterator[ConsoleProcess]:
    """A console that acts as the user that is logged in."""
    with running_console(secured.bootstrap, "--login", "--allow-changes", *SASL) as console:
        yield console


def logged_in(console: ConsoleProcess, user: str) -> Browser:
    browser = console.browser(logged_in=False)
    assert browser.post("/login", {"user": user, "password": f"secret-of-{user}"}).status == 303
    return browser


def test_entries_are_added_and_deleted(users_console: ConsoleProcess) -> None:
    ana = logged_in(users_console, "ana")
    plan = ana.change("/security/acls/add", **{**ENTRY, "principal": "User:carl"})
    assert "odradek acl add --allow User:carl --topic orders --prefixed --operation read" in plan.words
    page = ana.confirm("/security/acls/add", plan)
    assert "User:carl topic orders prefixed * read allow" in page.words
    entry = {**ENTRY, "principal": "User:carl", "host": "*"}
    plan = ana.change("/security/acls/delete", **entry)
    assert "are rejected from then on" in plan.words
    assert "User:carl topic orders" not in ana.confirm("/security/acls/delete", plan).words
    assert ana.change("/security/acls/delete", **entry).status == 409


def test_the_console_acts_as_the_user(users_console: ConsoleProcess) -> None:
    bob = logged_in(users_console, "bob")
    assert "CLUSTER_AUTHORIZATION_FAILED" in bob.get("/security").words
    answer = bob.change("/create-topic", topic="of-bob")
    assert answer.status == 409
    assert "TOPIC_AUTHORIZATION_FAILED" in answer.words
    ana = logged_in(users_console, "ana")
    ana.confirm("/create-topic", ana.change("/create-topic", topic="of-ana"))
    assert ana.get("/topics/of-ana").status == 200
    assert bob.get("/topics/of-ana").status in (404, 409)
    assert "of-ana" not in bob.get("/topics").words


def test_transactional_ids_are_listed(browser: Browser, broker: Broker) -> None:
    broker.create_topic("transacted", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "shop-1"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("transacted", b"x")
    producer.flush()
    assert "shop-1 Ongoing" in browser.get("/transactions").words
    words = browser.get("/transaction?id=shop-1").words
    assert "state Ongoing" in words
    assert "transacted-0" in words
    producer.commit_transaction()
    assert "No transactional id has “zebra”" in browser.get("/transactions?q=zebra").words
    assert browser.get("/transaction?id=absent").status == 404
    assert browser.get("/transaction").status == 400


def test_an_open_transaction_can_be_aborted(browser: Browser, broker: Broker) -> None:
    broker.create_topic("hung", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "hung-1"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("hung", b"x")
    producer.flush()
    assert "No transaction hangs" in browser.get("/transactions/hanging").words
    plan = browser.change("/transactions/abort", topic="hung", partition="0", start_offset="0")
    assert "odradek txn abort hung:0 --start-offset 0 --yes" in plan.words
    page = browser.confirm("/transactions/abort", plan, typed="hung-0")
    assert "Abort the transaction in hung-0: done" in page.words
    assert browser.change("/transactions/abort", topic="hung", partition="0", start_offset="0").status == 409


def test_without_an_authorizer_the_page_says_so(browser: Browser) -> None:
    answer = browser.get("/security")
    assert answer.status == 200
    assert "SECURITY_DISABLED" in answer.words
    assert browser.change("/security/acls/add", **ENTRY, confirm="yes").status == 409


@pytest.mark.parametrize(
    "wrong", [{"principal": "ana"}, {"operation": "dance"}, {"resource": "moon"}, {"pattern": "x"}, {"name": ""}]
)
def test_a_wrong_entry_is_not_planned(browser: Browser, wrong: dict[str, str]) -> None:
    assert browser.change("/security/acls/add", **{**ENTRY, **wrong}).status == 400


def test_users_get_and_lose_passwords(browser: Browser, audit: Path) -> None:
    fields = {"user": "bob", "mechanism": "SCRAM-SHA-256"}
    page = browser.change("/security/users/set", **fields, password="hunter-2")
    assert "bob SCRAM-SHA-256 8" in page.words
    plan = browser.change("/security/users/delete", **fields)
    assert browser.confirm("/security/users/delete", plan, typed="bob").status == 200
    assert "bob SCRAM-SHA-256" not in browser.get("/security/users").words
    again = browser.change("/security/users/delete", **fields, confirm="yes", typed="bob")
    assert again.status == 409
    assert browser.change("/security/users/set", **fields).status == 400
    assert "hunter-2" not in audit.read_text()


def test_a_password_is_in_no_page(browser: Browser) -> None:
    page = browser.change("/security/users/set", user="", mechanism="SCRAM-SHA-256", password="hunter-3")
    assert page.status == 400
    assert "hunter-3" not in page.text


def test_quotas_are_set_and_removed(browser: Browser, audit: Path) -> None:
    fields = {"user": "ana", "client-id": "batch", "quota": "producer_byte_rate"}
    plan = browser.change("/security/quotas", **fields, value="1048576")
    assert "ana batch producer_byte_rate – 1048576.0" in plan.words
    assert "odradek quota set --user ana --client-id batch producer_byte_rate=1048576" in plan.words
    assert "producer_byte_rate 1\u202f048\u202f576" in browser.confirm("/security/quotas", plan).text
    plan = browser.change("/security/quotas", **fields)
    assert "ana batch producer_byte_rate 1048576.0 –" in plan.words
    assert "There are no quotas" in browser.confirm("/security/quotas", plan).words
    assert json.loads(audit.read_text().splitlines()[-1])["target"] == "user ana, client-id batch"


@pytest.mark.parametrize(
    "wrong", [{"value": "much"}, {"value": "-1"}, {"value": "nan"}, {"quota": "no_such"}, {"user": ""}]
)
def test_a_wrong_quota_is_not_planned(browser: Browser, wrong: dict[str, str]) -> None:
    answer = browser.change("/security/quotas", **{"user": "ana", "quota": "producer_byte_rate", "value": "1", **wrong})
    assert answer.status in (400, 409)
