"""Tests decisions by access control entries."""

from __future__ import annotations

import pytest

from coordinator.cluster.security.acl import AccessControlEntry
from coordinator.cluster.security.acls import Acls, Actor
from protocol.acl import Operation, PatternType, Permission, Resource

ALICE = Actor("User:alice", "10.0.0.1")
BOB = Actor("User:bob", "10.0.0.2")


def entry(
    name: str = "orders",
    operation: int = Operation.READ,
    *,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    permission: Permission = Permission.ALLOW,
) -> AccessControlEntry:
    return AccessControlEntry(Resource.TOPIC, name, pattern, principal, host, operation, permission)


def index(*entries: AccessControlEntry) -> Acls:
    made = Acls()
    for number, one in enumerate(entries):
        made.set(bytes([number]), one)
    return made


def reads(made: Acls, name: str = "orders", actor: Actor = ALICE) -> bool:
    return made.allows(actor, Operation.READ, Resource.TOPIC, name)


def test_nothing_is_allowed_that_no_entry_allows() -> None:
    assert not reads(index())
    assert not reads(index(entry()), "others")
    assert not reads(index(entry()), actor=BOB)
    assert not index(entry()).allows(ALICE, Operation.READ, Resource.GROUP, "orders")


def test_names_are_literal_prefixes_or_all() -> None:
    prefixed = index(entry("ord", pattern=PatternType.PREFIXED))
    assert reads(index(entry()))
    assert reads(prefixed)
    assert reads(prefixed, "ord")
    assert not reads(prefixed, "or")
    assert reads(index(entry("*")), "whatever")
    assert not reads(index(entry("*", pattern=PatternType.PREFIXED)), "whatever")


def test_hosts_are_literal_or_all() -> None:
    assert reads(index(entry(host="10.0.0.1")))
    assert not reads(index(entry(host="10.0.0.2")))


@pytest.mark.parametrize(("network", "address", "is_inside"), [
    ("10.0.0.0/8", "10.255.0.1", True),
    ("10.0.0.0/8", "11.0.0.1", False),
    ("10.0.0.77/24", "10.0.0.255", True),
    ("10.0.0.1/32", "10.0.0.1", True),
    ("10.0.0.1/32", "10.0.0.2", False),
    ("0.0.0.0/0", "203.0.113.9", True),
    ("0.0.0.0/0", "2001:db8::1", False),
    ("2001:db8::/32", "2001:db8:ffff::1", True),
    ("2001:db8::/32", "2001:db9::1", False),
    ("::/0", "2001:db8::1", True),
    ("::/0", "10.0.0.1", False),
    ("10.0.0.0/33", "10.0.0.1", False),
    ("10.0.0.0/", "10.0.0.1", False),
    ("a/b", "10.0.0.1", False),
    ("10.0.0.0/8", "a-name", False),
])  # fmt: skip
def test_hosts_may_be_networks(network: str, address: str, is_inside: bool) -> None:
    actor = Actor("User:alice", address)
    assert reads(index(entry(host=network)), actor=actor) is is_inside
    denies = index(entry(), entry(host=network, permission=Permission.DENY))
    assert reads(denies, actor=actor) is not is_inside


def test_hosts_of_entries_may_be_spelled_as_java_does() -> None:
    local = Actor("User:alice", "::1")
    assert reads(index(entry(host="0:0:0:0:0:0:0:1")), actor=local)
    denied = entry(host="0:0:0:0:0:0:0:1", permission=Permission.DENY)
    assert not reads(index(entry(), denied), actor=local)
    assert reads(index(entry(host="::ffff:10.0.0.1")))


def test_an_entry_of_everybody_is_of_each_user() -> None:
    assert reads(index(entry(principal="User:*")), actor=BOB)


def test_what_denies_wins_over_what_allows_however_specific_that_is() -> None:
    assert not reads(index(entry(), entry("*", principal="User:*", permission=Permission.DENY)))
    prefix = entry("o", 2, pattern=PatternType.PREFIXED, permission=Permission.DENY)
    assert not reads(index(prefix, entry()))


def test_reading_implies_describing_where_it_is_allowed_and_not_where_it_is_denied() -> None:
    describe = (ALICE, Operation.DESCRIBE, Resource.TOPIC, "orders")
    assert index(entry()).allows(*describe)
    allowed = entry(operation=Operation.DESCRIBE)
    assert index(allowed, entry(permission=Permission.DENY)).allows(*describe)


def test_what_no_entry_is_about_may_be_allowed_to_everybody() -> None:
    made = index(entry())
    assert made.allows(BOB, Operation.READ, Resource.TOPIC, "others", allows_unknown=True)
    assert not made.allows(BOB, Operation.READ, Resource.TOPIC, "orders", allows_unknown=True)


def test_an_entry_that_is_removed_counts_no_more() -> None:
    made = index(entry(), entry("ord", pattern=PatternType.PREFIXED))
    made.remove(b"\0")
    assert reads(made)
    made.remove(b"\1")
    assert not reads(made)
    assert len(made) == 0


def test_an_entry_added_or_removed_after_a_decision_counts() -> None:
    made = index(entry("others"))
    assert not reads(made)
    made.set(b"added", entry("ord", pattern=PatternType.PREFIXED))
    assert reads(made)
    made.set(b"added", entry("bills"))
    assert not reads(made)
    made.remove(b"added")
    assert not reads(made, "bills")
    assert reads(made, "others")


def test_a_copy_has_the_same_entries_and_changes_by_itself() -> None:
    made = index(entry())
    assert reads(made)
    copied = made.copy()
    made.remove(b"\0")
    assert reads(copied)
    assert not reads(made)


def test_who_may_write_to_any_topic_is_known() -> None:
    def may_write(*entries: AccessControlEntry) -> bool:
        return index(*entries).allows_some(ALICE, Operation.WRITE, Resource.TOPIC)

    write = entry(operation=Operation.WRITE)
    assert may_write(write)
    assert not may_write(entry())
    assert not may_write(write, entry(operation=2, permission=Permission.DENY))
    assert not may_write(write, entry("o", 2, pattern=PatternType.PREFIXED, permission=Permission.DENY))
    assert not may_write(write, entry("*", 2, permission=Permission.DENY))
    assert may_write(write, entry("x", 2, permission=Permission.DENY))
